"""The head that is read is the one that the model ends with, or the model is refused: a row for
each way in which files hide it.
"""

import json
import pickle
import re

import heads
import numpy as np
import pytest
from heads import CODES, INNER, LABELS, LLAMA, B, C, D, E, N, V, W, some
from safetensors.numpy import save_file

import softgeom as sg

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")

BERT = {"bert.embeddings.word_embeddings.weight": E} | {f"bert.{n}": t for n, t in INNER.items()}
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


def in_parts(path):
    first, second = (path / f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
    save_file(LLAMA, first)
    save_file({"lm_head.weight": W}, second)
    names = {name: first.name for name in LLAMA} | {"lm_head.weight": second.name}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    told = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
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
    "a classifier of a name that is not known, by its labels": lambda p: (
        folder(p, BERT | {"ending.weight": V, "ending.bias": N},
               "BertForTokenClassification", **FIVE), V, N),
    "fairseq, untied": lambda p: (
        state(p, {"model": {"decoder.embed_tokens.weight": E,
                            "decoder.output_projection.weight": W}}), W, None),
    "DataParallel's prefix, wrapped": lambda p: (
        state(p, {"state_dict": {f"module.{n}": t for n, t in INNER.items()}
                  | {"module.model.fc.weight": W, "module.model.fc.bias": B}}), W, B),
    "OpenNMT keeps its generator apart": lambda p: (
        state(p, {"model": INNER, "generator": {"0.weight": W, "0.bias": B}}), W, B),
    "an average over steps is no second head": lambda p: (
        state(p, {"model": INNER | {"fc.weight": W}, "ema": INNER | {"fc.weight": E}}), W, None),
    "weight norm": lambda p: normed(p, "new"),
    "weight norm, the old way": lambda p: normed(p, "old"),
    "a pruned head": lambda p: normed(p, "pruned"),
    "Flax stores a square kernel turned": lambda p: (
        pickled(p, {"head": {"classifier/kernel": V[:, :LABELS].T, "classifier/bias": N}}),
        V[:, :LABELS], N),
    "a file of a folder is read with its config": lambda p: (
        folder(p, LLAMA, "GemmaForCausalLM", model_type="gemma") / "model.safetensors", E, None),
    "one part of several, with the index beside it": lambda p: (in_parts(p), W, None),
}  # fmt: skip

# situation: the model, and what the refusal says
REFUSED = {
    "a quantised head": lambda p: (
        folder(p, LLAMA | CODES, "LlamaForCausalLM"), r"quantised.*lm_head\.scales"),
    "a head that is said to be tied and differs": lambda p: (
        folder(p, LLAMA | {"lm_head.weight": W}, "LlamaForCausalLM", tie_word_embeddings=True),
        r"differs from it.*lm_head\.weight \(30, 6\), model\.embed_tokens"),
    "Baichuan 2, whose rows are normalised": lambda p: (
        folder(p, LLAMA | {"lm_head.weight": W}, "BaichuanForCausalLM", model_type="baichuan",
               vocab_size=125696), "divided by its norm"),
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
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the old weight norm is deprecated
@pytest.mark.parametrize("situation", READ)
def test_the_head_is_the_one_that_the_model_ends_with(tmp_path, situation):
    model, weight, bias = READ[situation](tmp_path)
    head = sg.load(model)
    np.testing.assert_array_equal(head.layer.W, weight)
    np.testing.assert_array_equal(head.layer.b, bias)
    assert head.names["weight"] in head.chosen
    assert not head.is_embedding


@pytest.mark.parametrize("situation", heads.READ)
def test_a_file_without_a_description_shows_its_head(tmp_path, situation):
    write, weight, bias = heads.READ[situation]
    path = write(tmp_path)
    head = sg.load(path)
    assert any(np.array_equal(head.layer.W, each) for each in (W, V, heads.LAST))
    assert bias is None if head.layer.b is None else np.array_equal(head.layer.b, B)
    if path.suffix != ".onnx":
        assert (head.names["weight"], head.names.get("bias")) == (weight, bias)


@pytest.mark.parametrize("situation", REFUSED)
def test_what_is_not_certain_is_refused_in_one_sentence(tmp_path, situation):
    model, said = REFUSED[situation](tmp_path)
    with pytest.raises(ValueError, match=said) as caught:
        sg.load(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("situation", heads.REFUSED)
def test_a_file_without_a_certain_head_is_refused(tmp_path, situation):
    write, said = heads.REFUSED[situation]
    with pytest.raises(ValueError, match=re.escape(said.partition(": ")[0])):
        sg.load(write(tmp_path))


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
        features = sg.load(heads.header(kind, tensors)(tmp_path)).features
        np.testing.assert_array_equal(features.gain, gain)
        assert features.centred is centred


def test_what_a_gguf_header_puts_behind_the_layer_is_read(tmp_path):
    facts = {"gemma2__final_logit_softcapping": 30.0}
    head = sg.load(heads.header("gemma2", {"token_embd.weight": W}, **facts)(tmp_path))
    assert head.readout.soft_cap == 30.0
