"""The page's choice of the layer: that of `softgeom.load`, or the visitor is asked."""

import base64

import numpy as np
import pytest
from safetensors.numpy import save

import softgeom as sg
from softgeom.features.ellipsoid import rounded_radius
from softgeom.web.scan_page import table

gguf = pytest.importorskip("gguf")
onnx = pytest.importorskip("onnx")

RNG = np.random.default_rng(46)
C, D = 30, 6
OPEN = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
try {
  const { choices, chosen, said, behind } = await m.answers.open({ file, table: argument.table });
  const layer = choices.find(({ name }) => name === chosen);
  if (!layer || layer.open) return { said: `${said} ${layer?.open}`, offered: choices.length };
  const choice = { weight: chosen, bias: layer.bias, transposed: layer.transposed };
  const { lost } = await m.answers.scan({ choice, set: { kind: "ball", radius: 1 }, labels: null, file: file.name });
  return { ...layer, said, behind, ceilings: lost.filter(({ ceiling }) => ceiling !== null).length, lost: lost.length };
} catch (error) {
  return { said: error.message };
}
"""  # noqa: E501


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


W, B, E, V, N = some(C, D), some(C), some(C, D), some(5, D), some(5)
INNER = {"a.dense.weight": some(D, D), "a.dense.bias": some(D), "z.fc1.weight": some(12, D)}
INNER |= {"z.fc1.bias": some(12), "z.fc2.weight": some(D, 12), "z.fc2.bias": some(D)}
LLAMA = {"model.embed_tokens.weight": E, "model.norm.weight": some(D)}
CODES = {"lm_head.qweight": np.zeros((1, C), np.int32), "lm_head.scales": some(1, C)}
PEFT = "base_model.model.classifier"


def tensors(held, name="model.safetensors"):
    return lambda path: (
        (path / name).write_bytes(save({n: np.ascontiguousarray(t) for n, t in held.items()})),
        path / name,
    )[1]


def arrays(held):
    return lambda path: (np.savez(path / "m.npz", **held), path / "m.npz")[1]


def header(kind, held, **facts):
    """A GGUF file with this header; whole numbers as llama.cpp's splits have them."""

    def write(path):
        writer = gguf.GGUFWriter(str(path / "m.gguf"), kind)
        for key, value in facts.items():
            real = isinstance(value, float)
            (writer.add_float32 if real else writer.add_uint16)(key.replace("__", "."), value)
        for name, tensor in held.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path / "m.gguf"

    return write


def graph(text, opset=13, **held):
    """An ONNX file of x (1, 4, 6) or (1, 6, 4, 4) and W, b; `text` ends in y."""

    def write(path):
        shape = "1, 6, 4, 4" if "Conv" in text else "4, 6" if "Gemm" in text else "1, 4, 6"
        axes = ", ".join("abcdefg"[: shape.count(",") + 1])
        parsed = onnx.parser.parse_graph(f"g (float[{shape}] x) => (float[{axes}] y) {{ {text} }}")
        for name, array in ({"W": W.T, "b": B} | held).items():
            parsed.initializer.append(
                onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            )
        opsets = [onnx.helper.make_opsetid("", opset)]
        model = onnx.helper.make_model(parsed, opset_imports=opsets)
        (path / "m.onnx").write_bytes(model.SerializeToString())
        return path / "m.onnx"

    return write


# situation: the file, and its weight and bias
READ = {
    "torch.compile's prefix": (
        tensors({f"_orig_mod.{n}": t for n, t in INNER.items()} | {"_orig_mod.lm_head.weight": W}),
        "_orig_mod.lm_head.weight", None),
    "DataParallel's prefix": (
        tensors({f"module.{n}": t for n, t in INNER.items()}
                | {"module.model.fc.weight": W, "module.model.fc.bias": B}),
        "module.model.fc.weight", "module.model.fc.bias"),
    "BERT's head, whose bias has another name": (
        tensors(INNER | {"cls.predictions.decoder.weight": W, "cls.predictions.bias": B}),
        "cls.predictions.decoder.weight", "cls.predictions.bias"),
    "a convolution of width 1": (
        tensors(INNER | {"decoder.decoder_layers.0.weight": W[:, :, None],
                         "decoder.decoder_layers.0.bias": B}),
        "decoder.decoder_layers.0.weight", "decoder.decoder_layers.0.bias"),
    "PP-OCR's training weights": (
        tensors(INNER | {"head.ctc_head.fc.weight": W.T, "head.ctc_head.fc.bias": B,
                         "head.gtc_head.tgt_word_prj.weight": E, "decoder.weight": E}),
        "head.ctc_head.fc.weight", "head.ctc_head.fc.bias"),
    "PEFT's trained copy of a head": (
        tensors({f"{PEFT}.original_module.weight": some(5, D),
                 f"{PEFT}.modules_to_save.default.weight": V}),
        f"{PEFT}.modules_to_save.default.weight", None),
    "PEFT's copy of a matrix without a known name": (
        tensors({"ending.original_module.weight": some(5, D),
                 "ending.modules_to_save.default.weight": V}),
        "ending.modules_to_save.default.weight", None),
    "the last of a sequence": (
        tensors({"0.weight": some(12, D), "0.bias": some(12), "2.weight": some(C, 12),
                 "2.bias": B}), "2.weight", "2.bias"),
    "Nematus, untied": (
        arrays({"Wemb_dec": E, "ff_logit_W": W.T, "ff_logit_b": B}), "ff_logit_W", "ff_logit_b"),
    "a GGUF file, tied": (
        header("llama", {"token_embd.weight": W, "blk.0.ffn_up.weight": E}),
        "token_embd.weight", None),
    "a GGUF file, untied": (
        header("phi2", {"token_embd.weight": E, "output.weight": W, "output.bias": B}),
        "output.weight", "output.bias"),
    "a graph with a softmax": (
        graph("z = MatMul (x, W) s = Add (z, b) t = Identity (s) y = Softmax <axis = 2> (t)", 11),
        "W", "b"),
    "a product of matrices": (graph("z = Gemm (x, W, b) y = Softmax (z)", 11), "W", "b"),
    "a graph with a convolution": (
        graph("z = Conv (x, K, b) y = Softmax <axis = 1> (z)", K=W[:, :, None, None]), "K", "b"),
}  # fmt: skip

# situation: the file, and what is said
REFUSED = {
    "a quantised head": (tensors(LLAMA | CODES), "quantised"),
    "LoRA on the head": (
        tensors(LLAMA | {"lm_head.base_layer.weight": W, "lm_head.lora_A.default.weight": W[:2]}),
        "stored in parts"),
    "spectral norm": (
        tensors(INNER | {"fc.weight_orig": W, "fc.weight_u": some(C), "fc.weight_v": some(D)}),
        "stored in parts"),
    "one part of several, alone": (
        tensors({"lm_head.weight": W}, "model-00002-of-00002.safetensors"), "is part 2 of 2"),
    "two heads": (tensors({"classifier.weight": V, "lm_head.weight": W}), "several heads"),
    "parallel heads, numbered": (
        tensors({"classifier.0.weight": V, "classifier.1.weight": some(7, D)}), "no description"),
    "inner layers and no head": (tensors(INNER), "no description"),
    "an embedding and no description": (tensors(LLAMA | INNER), "no description"),
    "a bias without a matrix beside an embedding": (
        tensors({"embed_tokens.weight": W, "ending.bias": B}), "output's bias: ending.bias (30)"),
    "a GGUF file of embeddings": (
        header("nomic-bert", {"token_embd.weight": E}), "embeddings or ranks"),
    "a GGUF file that ranks": (
        header("qwen3", {"token_embd.weight": E, "cls.output.weight": V}), "or ranks"),
    "a GGUF file that pools": (
        header("qwen3", {"token_embd.weight": E}, qwen3__pooling_type=3), "or ranks"),
    "a part of a GGUF file": (
        header("llama", {"token_embd.weight": E}, split__count=2), "one of 2 parts"),
}  # fmt: skip

# what softgeom scan follows or refuses, and the page refuses
UNFOLLOWED = {
    "a detector": (
        "z = Conv (x, K, b) r = Relu (z) s = ConvTranspose (r, T) y = Sigmoid (s)",
        "Sigmoid is not followed"),
    "a log prior": ("z = MatMul (x, W) s = Add (z, b) y = Sub (s, b)", "Sub is not followed"),
    "a second bias": (
        "z = MatMul (x, W) s = Add (z, b) y = Add (s, b)", "Add is not followed"),
    "a softmax over time": (
        "z = MatMul (x, W) y = Softmax <axis = 1> (z)", "a Softmax along axis 1"),
    "a softmax that once ran over all axes": (
        "z = Conv (x, K, b) y = Softmax (z)", "a Softmax along axis 1"),
    "a factor": ("y = Gemm <alpha = -1.0> (x, W, b)", "Gemm has the option alpha"),
    "a number for each place": (
        "z = MatMul (x, W) y = Add (z, places)", "an Add of shape (4, 30)"),
    "another bias on the way": (
        "z = MatMul (x, W) y = Add (z, x)", "Add is not followed"),
}  # fmt: skip


@pytest.fixture
def opened(javascript):
    """`opened(path)`: what the page says of a file, and of its layer where that is certain."""

    def opened_(path):
        coded = base64.b64encode(path.read_bytes()).decode()
        return javascript(
            "scan_worker", OPEN, {"bytes": coded, "name": path.name, "table": table()}
        )

    return opened_


@pytest.mark.parametrize("situation", READ)
def test_the_page_takes_the_layer_that_the_library_takes(opened, tmp_path, situation):
    write, weight, bias = READ[situation]
    path = write(tmp_path)
    found, head = opened(path), sg.load(path)
    assert (found["name"], found.get("bias")) == (weight, bias)
    assert (found["classes"], found["features"]) == head.layer.W.shape
    assert weight in found["said"]
    if path.suffix != ".onnx":
        assert head.names["weight"] == weight
        assert head.names.get("bias") == bias
    assert (head.layer.b is None) == (bias is None)


@pytest.mark.parametrize("situation", REFUSED)
def test_what_the_library_refuses_is_not_chosen(opened, tmp_path, situation):
    write, said = REFUSED[situation]
    path = write(tmp_path)
    found = opened(path)
    assert "name" not in found
    assert said in found["said"]
    with pytest.raises(ValueError, match=r"\w"):
        sg.load(path)


@pytest.mark.parametrize("situation", UNFOLLOWED)
def test_a_graph_is_refused_by_the_operation_that_is_not_followed(opened, tmp_path, situation):
    text, said = UNFOLLOWED[situation]
    opset = 11 if "once" in situation else 13
    held = {"K": W[:, :, None, None], "T": some(C, 1, 2, 2), "places": some(4, C)}
    found = opened(graph(text, opset, **held)(tmp_path))
    assert "name" not in found
    assert said in found["said"]
    assert found["offered"]


def test_scores_that_are_capped_get_the_library_s_sentence_and_no_ceiling(opened, tmp_path):
    inner = {"token_embd.weight": np.vstack([W, W[:3].mean(axis=0)])}
    for kind, facts in {"gemma2": {"gemma2__final_logit_softcapping": 20.0}, "gemma2 ": {},
                        "granite": {"granite__logit_scale": 8.0}, "t5": {
                            "t5__embedding_length": D}}.items():  # fmt: skip
        path = header(kind.strip(), inner, **facts)(tmp_path)
        found = opened(path)
        ending = (
            "probabilities would be those of a softmax of the scores, not of the model's output"
        )
        assert ending in found["behind"]
        assert sg.load(path).behind
        assert (found["ceilings"], found["lost"] > 0) == (0, True)
    plain = opened(header("llama", inner, llama__logit_scale=1.0)(tmp_path))
    assert plain["behind"] == ""
    assert plain["ceilings"] > 0


def test_a_norm_has_the_library_s_room_for_rounding(javascript):
    values = RNG.uniform(0.5, 2, (3, 8))
    formats = {
        "ones": np.ones(8), "bfloat16": np.array([1.5, -0.75, 3, 2.0**-90, 0, 129, 1, 2]),
        "float16": np.array([1.0009765625, 2.0**-24, -65504, 3, 2.0**-16, 0, 1, 2]),
        "float32": values[0].astype(np.float32).astype(float), "float64": values[1],
    }  # fmt: skip
    for gain in formats.values():
        for shift in (np.zeros(8), values[2].astype(np.float16).astype(float)):
            body = "return m.roundedRadius(...argument.map((values) => Float64Array.from(values)));"
            radius = javascript("scan_norm", body, [gain.tolist(), shift.tolist()])
            assert radius == pytest.approx(rounded_radius(gain, shift), rel=1e-14)
