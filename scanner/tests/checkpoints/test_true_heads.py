"""The head that is read is the one that the model ends with, or the model is refused: a row for
each way in which files hide it.
"""

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import softgeom as sg

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")
gguf = pytest.importorskip("gguf")

RNG = np.random.default_rng(46)
C, D, LABELS = 30, 6, 5


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


W, B, E, V, N = some(C, D), some(C), some(C, D), some(LABELS, D), some(LABELS)
INNER = {"a.dense.weight": some(D, D), "a.dense.bias": some(D), "z.fc1.weight": some(12, D)}
INNER |= {"z.fc1.bias": some(12), "z.fc2.weight": some(D, 12), "z.fc2.bias": some(D)}
BERT = {"bert.embeddings.word_embeddings.weight": E} | {f"bert.{n}": t for n, t in INNER.items()}
LLAMA = {"model.embed_tokens.weight": E, "model.norm.weight": some(D)}
CODES = {"lm_head.qweight": np.zeros((1, C), np.int32), "lm_head.scales": some(1, C)}
FIVE = {"id2label": {str(n): f"label {n}" for n in range(LABELS)}}


def folder(path, tensors, architecture, **config):
    path.mkdir(exist_ok=True)
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, path / "model.safetensors")
    told = {"architectures": [architecture], **config}
    (path / "config.json").write_text(json.dumps(told))
    return path


def state(path, content):
    def as_torch(value):
        if isinstance(value, dict):
            return {name: as_torch(part) for name, part in value.items()}
        return torch.tensor(value)

    torch.save(as_torch(content), path / "m.pt")
    return path / "m.pt"


def pickled(path, tensors):
    (path / "m.pkl").write_bytes(pickle.dumps(tensors))
    return path / "m.pkl"


def written(path, kind, tensors, **facts):
    """A GGUF file with this header."""
    writer = gguf.GGUFWriter(str(path / "m.gguf"), kind)
    for key, value in facts.items():
        real = isinstance(value, float)
        (writer.add_float32 if real else writer.add_uint32)(key.replace("__", "."), value)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path / "m.gguf"


def in_parts(path, *, index, config="LlamaForCausalLM"):
    first, second = (path / f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
    save_file(LLAMA, first)
    save_file({"lm_head.weight": W}, second)
    names = {name: first.name for name in LLAMA} | {"lm_head.weight": second.name}
    if index:
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        told = {"architectures": [config], "tie_word_embeddings": False}
        (path / "config.json").write_text(json.dumps(told))
    return first


def normed(path, kind):
    """A head under weight norm or pruning, and what the module itself multiplies with."""
    layer = torch.nn.Linear(D, C)
    if kind == "pruned":
        prune.random_unstructured(layer, "weight", amount=0.5)
    else:
        old = torch.nn.utils.weight_norm
        (old if kind == "old" else torch.nn.utils.parametrizations.weight_norm)(layer)
    with torch.no_grad():
        layer(torch.ones(1, D))
    torch.save(torch.nn.Sequential(torch.nn.Linear(4, D), layer).state_dict(), path / "m.pt")
    return path / "m.pt", layer.weight.detach().numpy(), layer.bias.detach().numpy()


# situation: the model, W and b
READ = {
    "a text classifier, not its embedding": lambda p: (
        folder(p, BERT | {"classifier.weight": V, "classifier.bias": N},
               "BertForSequenceClassification", **FIVE), V, N),
    "a classifier of GPT-2, without a bias": lambda p: (
        folder(p, {"transformer.wte.weight": E, "score.weight": V},
               "GPT2ForSequenceClassification", **FIVE), V, None),
    "a classifier of a name that is not known, by its labels": lambda p: (
        folder(p, BERT | {"ending.weight": V, "ending.bias": N},
               "BertForTokenClassification", **FIVE), V, N),
    "ALBERT, tied, whose embedding is narrower": lambda p: (
        folder(p, {"albert.embeddings.word_embeddings.weight": some(C, 4) * 0 + W[:, :4],
                   "predictions.dense.weight": some(4, D), "predictions.dense.bias": some(4),
                   "predictions.bias": B}, "AlbertForMaskedLM"), W[:, :4], B),
    "Mamba, tied": lambda p: (
        folder(p, {"backbone.embeddings.weight": W, "backbone.layers.1.mixer.dt_proj.weight":
                   some(12, 2), "backbone.layers.1.mixer.dt_proj.bias": some(12)},
               "MambaForCausalLM", tie_word_embeddings=True), W, None),
    "MobileBERT, in two parts": lambda p: (
        folder(p, {"cls.predictions.decoder.weight": W[:, :2], "cls.predictions.bias": B,
                   "cls.predictions.dense.weight": W[:, 2:].T}, "MobileBertForMaskedLM"), W, B),
    "fairseq, untied": lambda p: (
        state(p, {"model": {"decoder.embed_tokens.weight": E,
                            "decoder.output_projection.weight": W}}), W, None),
    "torch.compile's prefix": lambda p: (
        state(p, {f"_orig_mod.{n}": t for n, t in INNER.items()} | {"_orig_mod.lm_head.weight": W}),
        W, None),
    "DataParallel's prefix, wrapped": lambda p: (
        state(p, {"state_dict": {f"module.{n}": t for n, t in INNER.items()}
                  | {"module.model.fc.weight": W, "module.model.fc.bias": B}}), W, B),
    "OpenNMT keeps its generator apart": lambda p: (
        state(p, {"model": INNER, "generator": {"0.weight": W, "0.bias": B}}), W, B),
    "an average over steps is no second head": lambda p: (
        state(p, {"model": INNER | {"fc.weight": W}, "ema": INNER | {"fc.weight": E}}), W, None),
    "a convolution of width 1": lambda p: (
        state(p, INNER | {"decoder.decoder_layers.0.weight": W[:, :, None],
                          "decoder.decoder_layers.0.bias": B}), W, B),
    "weight norm": lambda p: normed(p, "new"),
    "weight norm, the old way": lambda p: normed(p, "old"),
    "a pruned head": lambda p: normed(p, "pruned"),
    "PP-OCR's training weights": lambda p: (
        pickled(p, INNER | {"head.ctc_head.fc.weight": W.T, "head.ctc_head.fc.bias": B,
                            "head.gtc_head.tgt_word_prj.weight": E}), W, B),
    "Flax stores a square kernel turned": lambda p: (
        pickled(p, {"head": {"classifier/kernel": V[:, :LABELS].T, "classifier/bias": N}}),
        V[:, :LABELS], N),
    "a file of a folder is read with its config": lambda p: (
        folder(p, LLAMA, "GemmaForCausalLM", model_type="gemma") / "model.safetensors", E, None),
    "one part of several, with the index beside it": lambda p: (in_parts(p, index=True), W, None),
    "PEFT's trained copy of a head": lambda p: (
        state(p, {"base_model.model.classifier.original_module.weight": some(LABELS, D),
                  "base_model.model.classifier.modules_to_save.default.weight": V}), V, None),
    "a GGUF file, tied": lambda p: (
        written(p, "llama", {"token_embd.weight": W, "blk.0.ffn_up.weight": E}), W, None),
    "a GGUF file, untied": lambda p: (
        written(p, "phi2", {"token_embd.weight": E, "output.weight": W, "output.bias": B}), W, B),
}  # fmt: skip

# situation: the model, and what the refusal says
REFUSED = {
    "one part of several, alone": lambda p: (in_parts(p, index=False), "is part 1 of 2"),
    "a quantised head": lambda p: (
        folder(p, LLAMA | CODES, "LlamaForCausalLM"), r"quantised.*lm_head\.scales"),
    "a quantised head without a description": lambda p: (state(p, LLAMA | CODES), "quantised"),
    "LoRA on the head": lambda p: (
        state(p, LLAMA | {"lm_head.base_layer.weight": W, "lm_head.lora_A.default.weight": W[:2]}),
        "stored in parts"),
    "a head that is said to be tied and differs": lambda p: (
        folder(p, LLAMA | {"lm_head.weight": W}, "LlamaForCausalLM", tie_word_embeddings=True),
        r"differs from it.*lm_head\.weight \(30, 6\), model\.embed_tokens"),
    "Baichuan 2, whose rows are normalised": lambda p: (
        folder(p, LLAMA | {"lm_head.weight": W}, "BaichuanForCausalLM", model_type="baichuan",
               vocab_size=125696), "divided by its norm"),
    "two heads whose mean decides": lambda p: (
        folder(p, {"head.weight": V, "head.bias": N, "dist_head.weight": V, "dist_head.bias": N},
               "SwiftFormerForImageClassification", **FIVE), "several layers for its 5 labels"),
    "a classifier with another number of labels": lambda p: (
        folder(p, BERT | {"classifier.weight": V, "classifier.bias": N},
               "BertForSequenceClassification"), "no layer that is known for its 2 labels"),
    "a detector of replaced words": lambda p: (
        folder(p, {"electra.embeddings.word_embeddings.weight": E}, "ElectraForPreTraining"),
        "no layer over words"),
    "answers to questions": lambda p: (
        folder(p, BERT | {"qa_outputs.weight": V[:2]}, "BertForQuestionAnswering"),
        "no layer over classes"),
    "another task than those of the table": lambda p: (
        folder(p, BERT | {"cls.seq_relationship.weight": V[:2], "cls.seq_relationship.bias": N[:2]},
               "BertForNextSentencePrediction", tie_word_embeddings=True), "no layer over classes"),
    "an unknown architecture, said to be tied": lambda p: (
        folder(p, BERT | {"ending.weight": V}, "Mine", tie_word_embeddings=True), "no description"),
    "a bias without a matrix beside a tied embedding": lambda p: (
        folder(p, LLAMA | {"ending.bias": B}, "OtherForCausalLM", tie_word_embeddings=True),
        r"output's bias.*ending\.bias \(30\)"),
    "inner layers and no head": lambda p: (state(p, INNER), r"name one .*z\.fc1\.weight \(12, 6\)"),
    "an embedding and no description": lambda p: (state(p, LLAMA | INNER), "no description"),
    "two heads": lambda p: (
        state(p, {"classifier.weight": V, "lm_head.weight": W}), "several heads"),
    "parallel heads, numbered": lambda p: (
        state(p, {"heads.0.weight": V, "heads.1.weight": some(7, D)}), "no description"),
    "spectral norm": lambda p: (
        state(p, INNER | {"fc.weight_orig": W, "fc.weight_u": some(C), "fc.weight_v": some(D)}),
        "stored in parts"),
    "a GGUF file of embeddings": lambda p: (
        written(p, "nomic-bert", {"token_embd.weight": E}), "embeddings or ranks"),
    "a GGUF file that ranks": lambda p: (
        written(p, "qwen3", {"token_embd.weight": E, "cls.output.weight": V}), "or ranks"),
    "a GGUF file that pools": lambda p: (
        written(p, "qwen3", {"token_embd.weight": E}, qwen3__pooling_type=3), "or ranks"),
    "a part of a GGUF file": lambda p: (
        written(p, "llama", {"token_embd.weight": E}, split__count=2), "one of 2 parts"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the old weight norm is deprecated
@pytest.mark.parametrize("situation", READ)
def test_the_head_is_the_one_that_the_model_ends_with(tmp_path, situation):
    model, weight, bias = READ[situation](tmp_path)
    head = sg.load(model)
    np.testing.assert_array_equal(head.layer.W, weight)
    assert (head.layer.b is None) == (bias is None)
    if bias is not None:
        np.testing.assert_array_equal(head.layer.b, bias)
    assert head.names["weight"] in head.chosen
    assert not head.is_embedding


@pytest.mark.parametrize("situation", REFUSED)
def test_what_is_not_certain_is_refused_in_one_sentence(tmp_path, situation):
    model, said = REFUSED[situation](tmp_path)
    with pytest.raises(ValueError, match=said) as caught:
        sg.load(model)
    assert "\n" not in str(caught.value)


def test_a_classifier_has_the_names_of_its_labels(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(f"word {n}" for n in range(C)))
    model = READ["a text classifier, not its embedding"](tmp_path)[0]
    assert sg.load(model).layer.tokens == tuple(FIVE["id2label"].values())
    assert sg.load(model / "model.safetensors").layer.tokens == tuple(FIVE["id2label"].values())


def test_the_norm_is_the_one_that_feeds_the_layer(tmp_path):
    """Gemma's gains are stored less one, in a file as in its folder; BigBirdPegasus ends with the
    norm of its embedding; what has no description has none that is certain.
    """
    gain, last = some(D), some(D)
    gemma = folder(tmp_path / "g", LLAMA | {"model.norm.weight": gain}, "GemmaForCausalLM",
                   model_type="gemma")  # fmt: skip
    for model in (gemma, gemma / "model.safetensors"):
        np.testing.assert_array_equal(sg.load(model).features.gain, gain.astype(float) + 1)
    norms = {"model.decoder.layers.0.final_layer_norm.weight": last}
    norms |= {"model.decoder.layernorm_embedding.weight": gain, "model.shared.weight": W}
    bird = folder(tmp_path / "b", norms, "BigBirdPegasusForConditionalGeneration",
                  model_type="bigbird_pegasus")  # fmt: skip
    np.testing.assert_array_equal(sg.load(bird).features.gain, gain)
    assert sg.load(state(tmp_path, LLAMA | {"lm_head.weight": W})).features is None
    # llama.cpp has added the one, and its Command R takes the mean off without a shift
    tensors = {"token_embd.weight": W, "output_norm.weight": gain}
    for kind, centred in (("gemma2", False), ("command-r", True)):
        features = sg.load(written(tmp_path, kind, tensors)).features
        np.testing.assert_array_equal(features.gain, gain)
        assert features.centred is centred


def test_what_a_gguf_header_puts_behind_the_layer_is_read(tmp_path):
    facts = {"gemma2__final_logit_softcapping": 30.0}
    head = sg.load(written(tmp_path, "gemma2", {"token_embd.weight": W}, **facts))
    assert head.readout.soft_cap == 30.0
