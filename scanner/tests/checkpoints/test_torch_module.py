"""The layer of a module in memory: what its own output is computed from, or a refusal."""

import numpy as np
import pytest

import softgeom as sg

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
FEATURES, CLASSES = 4, 7


class Net(nn.Module):
    """`forward` is what the test gives it; the layer `out` is not the last that is registered."""

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.embedding = nn.Embedding(CLASSES, FEATURES)
        self.out = nn.Linear(FEATURES, CLASSES)
        self.hidden = nn.Linear(FEATURES, FEATURES)
        self.register_buffer("bias", torch.randn(CLASSES))

    def forward(self, x, labels=None):
        if labels is not None:
            return self.hidden(x)
        return self.run(self, torch.tanh(self.hidden(x)))


def adapted(module):
    """As PEFT's LoRA has it: the matrix stands in `base_layer`, and the output has a term more."""

    class Lora(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer, self.lora_A = base, nn.Linear(FEATURES, 2, bias=False)

        weight = property(lambda self: self.base_layer.weight)

        def forward(self, x):
            return self.base_layer(x) + F.pad(self.lora_A(x), (0, CLASSES - 2))

    module.out = Lora(module.out)
    return module


def old_weight_norm(module):
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(module.out)
    with torch.no_grad():
        module.out.weight_g += 1  # the matrix follows at the next call only
    return module


def pruned(module):
    from torch.nn.utils import prune

    prune.l1_unstructured(module.out, "weight", 5)
    with torch.no_grad():
        module.out.weight_orig += 1
    return module


class Sub(nn.Linear):
    def forward(self, x):
        return super().forward(x) ** 3


def new_norm(module):
    nn.utils.parametrizations.weight_norm(module.out)
    return module


CERTAIN = {
    "the layer": Net(lambda net, x: net.out(x)),
    "a softmax": Net(lambda net, x: F.dropout(net.out(x), 0.1, False).softmax(-1)),
    "the embedding": Net(lambda net, x: F.linear(x, net.embedding.weight)),
    "the embedding by name": Net(lambda net, x: F.linear(x, weight=net.embedding.weight)),
    "a bias elsewhere": Net(lambda net, x: F.linear(x, net.embedding.weight, net.bias)),
    "a temperature": Net(lambda net, x: net.out(x) / 2.5),
    "sigmoids": Net(lambda net, x: torch.sigmoid(net.out(x))),
    "a weight norm": new_norm(Net(lambda net, x: net.out(x))),
    "a weight norm of old": old_weight_norm(Net(lambda net, x: net.out(x))),
    "a pruned layer": pruned(Net(lambda net, x: net.out(x))),
    "in DataParallel": nn.DataParallel(Net(lambda net, x: net.out(x))),
    "a Sequential": nn.Sequential(nn.Linear(FEATURES, 3), nn.Tanh(), nn.Linear(3, CLASSES)),
    "a Sequential with a module that looks at numbers": nn.Sequential(
        Net(lambda net, x: net.hidden(x) if x.sum() > 0 else x), nn.Linear(FEATURES, CLASSES),
        nn.Dropout(),
    ),
}  # fmt: skip
REFUSED = {
    "two products": (Net(lambda net, x: net.out(x) + net.hidden(x).sum()), "ends with add"),
    "two outputs": (Net(lambda net, x: (net.out(x), net.hidden(x))), "several outputs"),
    "a normalised matrix": (
        Net(lambda net, x: F.linear(x, F.normalize(net.embedding.weight))), "ends with linear",
    ),
    "a negative scale": (Net(lambda net, x: net.out(x) * -1), "ends with mul"),
    "a rounded scale": (
        Net(lambda net, x: torch.div(net.out(x), 2, rounding_mode="floor")), "ends with div"),
    "a sigmoid of a softmax": (
        Net(lambda net, x: net.out(x).softmax(-1).sigmoid()), "ends with softmax"),
    "a softmax of a sigmoid": (
        Net(lambda net, x: net.out(x).sigmoid().softmax(-1)), "ends with sigmoid"),
    "two sigmoids": (Net(lambda net, x: net.out(x).sigmoid().sigmoid()), "ends with sigmoid"),
    "two softmaxes": (
        Net(lambda net, x: net.out(x).softmax(-1).log_softmax(-1)), "ends with softmax"),
    "twice a sigmoid": (Net(lambda net, x: net.out(x).sigmoid() * 2), "ends with sigmoid"),
    "a softmax over time": (Net(lambda net, x: net.out(x).softmax(0)), "softmax over axis 0"),
    "an adapter": (adapted(Net(lambda net, x: net.out(x))), "ends with add"),
    "a branch on numbers": (
        Net(lambda net, x: net.out(x) if x.sum() > 0 else net.hidden(x)), "does not show",
    ),
    "a Linear of its own kind": (Sub(FEATURES, CLASSES), "a Sub, whose product is not known"),
}  # fmt: skip


@pytest.mark.parametrize("model", CERTAIN.values(), ids=CERTAIN)
def test_scores_are_those_of_the_model(model):
    head, fed = sg.load(model), []
    inner = getattr(model, "module", model).eval()
    sequential = isinstance(inner, nn.Sequential)
    watched = [each for each in inner.modules() if isinstance(each, nn.Linear)][-1]
    keep = lambda _, inputs, output: fed.append(inputs[0] if sequential else torch.tanh(output))  # noqa: E731
    hook = watched.register_forward_hook(keep)
    with torch.no_grad():
        expected = inner(torch.randn(5, FEATURES)).numpy()
    hook.remove()
    scores, readout = head.layer.logits(fed[-1].numpy()), head.readout
    softmax = np.allclose(expected.sum(-1), 1)
    read = readout.probabilities if softmax or readout.rule == "threshold" else readout.logits
    np.testing.assert_allclose(read(scores), expected, atol=1e-5)


@pytest.mark.parametrize(("model", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_certain_is_refused_with_the_candidates(model, why):
    with pytest.raises(ValueError, match=why) as caught:
        sg.load(model)
    if "axis" not in why and "Sub" not in why:
        assert "(weight=)" in str(caught.value)
    assert sg.load(Net(lambda net, x: (x, x)), weight="out").layer.classes == CLASSES


def test_an_adapter_beside_the_layer_is_refused_also_by_name():
    model = adapted(Net(lambda net, x: net.out(x)))
    model.get_output_embeddings = lambda: model.out
    for options in ({}, {"weight": "out"}):
        with pytest.raises(ValueError, match="with an adapter beside its matrix: merge it first"):
            sg.load(model, **options)
    assert sg.load(model, weight="out.base_layer").layer.classes == CLASSES


transformers = pytest.importorskip("transformers")
SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
IMAGES = {"image_size": 4, "patch_size": 2} | SIZES
SIZES |= {"vocab_size": 11}
FIVE = {"id2label": dict(enumerate("abcde"))}
THREES = {"hidden_sizes": [8, 8, 8], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1]}
THREES |= {"key_dim": [4, 4, 4], "image_size": 64}


def built(name, options):
    kind = getattr(transformers, name)
    return kind(kind.config_class(**options))


def test_a_classifier_has_the_names_of_its_labels():
    model = built("BertForSequenceClassification", SIZES | FIVE)
    layer = sg.load(model).layer
    np.testing.assert_array_equal(layer.W, model.classifier.weight.detach())
    np.testing.assert_array_equal(layer.b, model.classifier.bias.detach())
    assert layer.tokens == tuple("abcde")


@pytest.mark.parametrize("name", ["BertModel", "BertForQuestionAnswering"])
def test_models_without_a_layer_over_classes_are_refused(name):
    with pytest.raises(ValueError, match=r"\(weight=\)"):
        sg.load(built(name, SIZES))


@pytest.mark.parametrize(
    ("build", "heads", "options"),
    [
        ("DeiTForImageClassificationWithTeacher", "cls_classifier.*distillation_cl", IMAGES | FIVE),
        ("LevitForImageClassificationWithTeacher", "classifier.*classifier_distill", THREES | FIVE),
    ],
)
def test_two_heads_whose_mean_decides_are_refused_with_both(tmp_path, build, heads, options):
    model = built(build, options)
    model.save_pretrained(tmp_path)
    for each in (model, tmp_path):
        with pytest.raises(ValueError, match=f"several layers for its 5 labels.*{heads}"):
            sg.load(each)


def test_what_stands_in_front_is_known_by_its_class_not_by_its_name():
    class Tanh(nn.Module):
        def forward(self, x):
            return 1.7159 * torch.tanh(x)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            return 2 * super().forward(x)

    layer, negative = nn.Linear(FEATURES, CLASSES), nn.LayerNorm(FEATURES, eps=-0.2)
    for step in (Tanh(), LayerNorm(FEATURES), negative):
        assert sg.load(nn.Sequential(step, layer)).feature_set()[0] == sg.Box(100.0)
    assert sg.load(nn.Sequential(nn.Tanh(), layer)).feature_set()[0] == sg.Box(1.0)
