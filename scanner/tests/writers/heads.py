"""Files whose last layer is easy to get wrong, for the library and for the page that scans: a row
for each way in which files hide it.
"""

import numpy as np
import pytest
from safetensors.numpy import save_file

gguf = pytest.importorskip("gguf")
onnx = pytest.importorskip("onnx")

RNG = np.random.default_rng(46)
C, D, LABELS = 30, 6, 5


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


W, B, E, V, N = some(C, D), some(C), some(C, D), some(LABELS, D), some(LABELS)
INNER = {"a.dense.weight": some(D, D), "a.dense.bias": some(D), "z.fc1.weight": some(12, D)}
INNER |= {"z.fc1.bias": some(12), "z.fc2.weight": some(D, 12), "z.fc2.bias": some(D)}
LLAMA = {"model.embed_tokens.weight": E, "model.norm.weight": some(D)}
CODES = {"lm_head.qweight": np.zeros((1, C), np.int32), "lm_head.scales": some(1, C)}
LAST = some(C, 12)
PEFT = "base_model.model.classifier"


def tensors(held, name="model.safetensors"):
    def write(path):
        save_file({n: np.ascontiguousarray(t) for n, t in held.items()}, path / name)
        return path / name

    return write


def arrays(held):
    def write(path):
        np.savez(path / "m.npz", **held)
        return path / "m.npz"

    return write


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
        tensors({"0.weight": some(12, D), "0.bias": some(12), "2.weight": LAST,
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
