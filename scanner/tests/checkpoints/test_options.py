"""Every option acts or is refused: the layer that it means is built by hand here."""

import os
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import softgeom as sg
from softgeom.checkpoints import load_head, load_softmax_layer

torch = pytest.importorskip("torch")

CLASSES, OTHER, FEATURES = 6, 4, 3
HEAD, VALUE = "lm_head.weight", "value.weight"
VECTOR = np.linspace(-1, 1, CLASSES).astype(np.float32)


class TwoHeads(torch.nn.Module):
    """Two linear layers and a loose bias; the second layer is registered last."""

    def __init__(self):
        super().__init__()
        self.lm_head = torch.nn.Linear(FEATURES, CLASSES)
        self.value = torch.nn.Linear(FEATURES, OTHER)
        self.register_buffer("spare", torch.from_numpy(VECTOR))


torch.manual_seed(0)
MODULE = TwoHeads()
STATE = {name: tensor.numpy() for name, tensor in MODULE.state_dict().items()}
W, B = STATE[HEAD], STATE["lm_head.bias"]
NAMES = list("abcdef")
UNNAMED = ("layer", "array", "list", "tensor", "sparse", "frame", "pair", "estimator")
NAMED = ("module", "state", "npz", "safetensors", "pt", "old.pt", "pkl")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The same two layers as each kind of model; what has no names holds one of them."""
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("models")
    np.savez(folder / "a.npz", **STATE)
    save_file(STATE, folder / "a.safetensors")
    torch.save(MODULE.state_dict(), folder / "a.pt")
    wrapped = {"model": MODULE.state_dict(), "epoch": 3}
    torch.save(wrapped, folder / "a.old.pt", _use_new_zipfile_serialization=False)
    (folder / "a.pkl").write_bytes(pickle.dumps(STATE))
    estimator = SimpleNamespace(coef_=W, intercept_=B, classes_=np.array(NAMES), fit=None)
    return {
        "layer": sg.SoftmaxLayer(W, B),
        "array": W,
        "list": W.tolist(),
        "tensor": torch.from_numpy(W),
        "sparse": scipy.sparse.csr_array(W),
        "frame": pd.DataFrame(W, index=NAMES),
        "pair": (pd.DataFrame(W), torch.from_numpy(B)),
        "estimator": estimator,
        "module": MODULE,
        "state": {"state_dict": MODULE.state_dict(), "epoch": 3},
        **{suffix: folder / f"a.{suffix}" for suffix in NAMED[2:]},
    }


def expected(kind, weight, bias, tokens, without_bias, blank):
    """The layer that the options mean, built by hand; None where they cannot be meant."""
    if bias is not None and without_bias:
        return None
    chosen, b = HEAD, None
    if kind in UNNAMED:
        if weight is not None or isinstance(bias, str):
            return None
        has_bias = kind in ("layer", "pair", "estimator")
        b = B if has_bias and not without_bias else None
    else:
        if weight is None and kind == "module":  # it has two layers, and no output
            return None
        chosen = {None: HEAD}.get(weight, weight)
        if chosen == "lm_head":
            if kind != "module":
                return None
            chosen = HEAD
        if chosen not in STATE or (isinstance(bias, str) and bias not in STATE):
            return None
        named = bias if isinstance(bias, str) else chosen.replace("weight", "bias")
        b = None if without_bias else STATE[named]
    if isinstance(bias, np.ndarray):
        b = bias
    classes = len(STATE[chosen])
    if b is not None and len(b) != classes:
        return None
    names = NAMES if kind in ("frame", "estimator") else None
    if isinstance(tokens, dict):
        tokens = sorted(tokens, key=tokens.get)
    if tokens is not None:
        names = list(tokens)
    if names is not None:
        names = fitted(names, classes, blank)
    if names is None and (tokens is not None or blank is not None):
        return None
    return sg.SoftmaxLayer(STATE[chosen], b, names)


def fitted(names, classes, blank):
    """A list of names as the caller says it is meant; None where it does not fit."""
    padded = names + [f"<unused {i}>" for i in range(len(names), classes)]
    return {
        (0, None): names,
        (1, "first"): ["<blank>", *names],
        (2, "first"): ["<blank>", *names, " "],
        (1, "last"): [*names, "<blank>"],
    }.get((classes - len(names), blank), padded[:classes] if blank == "none" else None)


@settings(max_examples=int(os.environ.get("DRAWN_CALLS", "200")))
@given(
    kind=st.sampled_from(UNNAMED + NAMED),
    weight=st.sampled_from([None, None, HEAD, VALUE, "lm_head", "no.such"]),
    bias=st.sampled_from([None, None, "spare", "value.bias", "no.such", VECTOR, VECTOR[:OTHER]]),
    tokens=st.sampled_from(
        [None, NAMES, NAMES[:OTHER], "ab", pd.Index(NAMES), {t: i for i, t in enumerate(NAMES)}]
    ),
    without_bias=st.booleans(),
    blank=st.sampled_from([None, None, "first", "last", "none"]),
    revision=st.sampled_from([None, None, None, "main"]),
)
def test_an_option_acts_or_is_refused(models, kind, revision, tokens, **options):
    tokens = list(tokens) if isinstance(tokens, str) else tokens
    options["tokens"] = tokens
    meant = expected(kind, **options)
    if meant is None or revision is not None:
        with pytest.raises(ValueError, match=r"\.$"):
            load_head(models[kind], revision=revision, **options)
        return
    layer = load_softmax_layer(models[kind], **options)
    np.testing.assert_array_equal(layer.W, meant.W)
    np.testing.assert_array_equal(layer.b, meant.b)
    assert layer.tokens == meant.tokens


torch.manual_seed(1)
AFTER_STEPS = {
    "nothing": torch.nn.Linear(FEATURES, CLASSES),
    "tanh": torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(FEATURES, CLASSES)),
    "norm": torch.nn.Sequential(torch.nn.LayerNorm(FEATURES), torch.nn.Linear(FEATURES, CLASSES)),
}
ASKED = {
    "scan": lambda model, **options: sg.scan(model, **options).features,
    "explain": lambda model, **options: sg.explain(model, 0, **options).scan.features,
    "ceilings": lambda model, **options: sg.ceilings(model, [0], **options).features,
    "ask": lambda model, **options: sg.ask(model, order=[0, 1], **options).features,
}


def expected_set(step, features, bound, low, after):
    """The set that the options mean, built by hand; None where they cannot be meant."""
    size = 100.0 if bound is None else bound
    if (features, after) == ("box", None):
        return sg.Box(size, low=low) if (-size if low is None else low) < size else None
    if size <= 0:
        return None
    if after is not None:
        box = {"relu": (size, 0.0), "tanh": (min(size, 1.0), max(-size, -1.0))}[after]
        return sg.Box(box[0], low=box[1]) if (features, low) == ("box", None) else None
    if low is not None:
        return None
    if features == "ball":
        return sg.Ball(size)
    if features == "auto" and step != "norm":
        return sg.Box(min(size, 1.0) if step == "tanh" else size)
    if bound is not None:
        return None
    if features in ("auto", "norm"):
        gain, shift = np.ones(FEATURES), np.zeros(FEATURES)
        return sg.Ellipsoid.layer_norm(gain, shift, rounded=True) if step == "norm" else None
    return sg.Unbounded() if features == "unbounded" else features


@settings(max_examples=int(os.environ.get("DRAWN_CALLS", "100")))
@given(
    verb=st.sampled_from(sorted(ASKED)),
    step=st.sampled_from(sorted(AFTER_STEPS)),
    features=st.sampled_from(["box", "box", "auto", "norm", "ball", "unbounded", sg.Ball(5.0)]),
    bound=st.sampled_from([None, None, 0.0, -1.0, 0.5, 2.0]),
    low=st.sampled_from([None, None, None, 0.0, -3.0, 1.0]),
    after=st.sampled_from([None, None, None, "relu", "tanh"]),
)
def test_where_inputs_lie_acts_or_is_refused(verb, step, **options):
    meant = expected_set(step, **options)
    if meant is None:
        with pytest.raises(ValueError, match=r"\.$"):
            ASKED[verb](AFTER_STEPS[step], **options)
        return
    assert ASKED[verb](AFTER_STEPS[step], **options) == meant


def test_a_named_layer_of_a_module_keeps_the_step_before_it():
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 5), torch.nn.Linear(5, 4)
    )
    assert load_head(model, weight="2.weight").feature_set()[0].high == 1
    assert load_head(model).activation is None


@pytest.mark.parametrize(
    ("model", "point"),
    [
        (3, "a int is not a model"),
        (None, "a NoneType is not a model"),
        ({"epoch": 3}, "without tensors is not a model"),
        ([[1.0, 2.0]], "1 class has nothing to choose from"),
        ([[1.0], [1.0, 2.0]], "W is not an array of numbers"),
        (pd.DataFrame({"a": ["x", "y"]}), "W must be an array of real numbers"),
        (SimpleNamespace(fit=None), "has no coef_: it is not fitted, or no linear model"),
        (SimpleNamespace(coef_=np.eye(3), support_vectors_=0), "between pairs of classes"),
        (SimpleNamespace(coef_=np.ones(3), intercept_=0.0), "not one row a class"),
        (torch.nn.ReLU(), "ReLU has no Linear layer"),
        (torch.eye(4).to_sparse(), "to_dense"),
        (torch.ones(4, 3).to(torch.float8_e4m3fn), "codes, not weights"),
        (torch.ones(4, 3, device="meta"), "meta device"),
        (torch.ones(1, 4).expand(2**30, 4), "repeats 16 bytes"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_model_is_one_sentence(model, point):
    with pytest.raises(ValueError, match=point):
        sg.load(model)


def test_names_without_order_and_hidden_entries_are_refused():
    for tokens in ({"a", "b", "c"}, 3, {"a": "b"}):
        with pytest.raises(ValueError, match="tokens"):
            sg.load(np.eye(3), tokens=tokens)
    hidden = np.ma.masked_array(np.eye(3), mask=np.eye(3))
    with pytest.raises(ValueError, match="W is a masked array"):
        sg.scan(hidden)
    with pytest.raises(ValueError, match="bias is a masked array"):
        sg.scan(np.eye(3), bias=np.ma.masked_equal([1.0, 2.0, 3.0], 2))


@pytest.mark.parametrize(
    ("classes", "index", "taken"),
    [
        (None, [2, 0, 1], [2, 3, 1]),  # numbers of classes that have no names
        (None, [0, 1, 2], [1, 2, 3]),
        (list("abc"), list("cab"), [2, 3, 1]),
        (list("abc"), [2, 0, 1], [2, 3, 1]),
        (list("abc"), list("abd"), None),
        (list("abc"), list("aab"), None),
        (None, list("cab"), None),
        (None, [1, 2, 3], None),
    ],
)
def test_a_bias_is_aligned_with_the_classes_by_its_index(classes, index, taken):
    frame, b = pd.DataFrame(np.eye(3), classes), pd.Series([1.0, 2, 3], index)
    for model, options in (((frame, b), {}), (frame, {"bias": b})):
        if taken is None:
            with pytest.raises(ValueError, match="index of the bias"):
                sg.load(model, **options)
        else:
            np.testing.assert_array_equal(sg.load(model, **options).layer.b, taken)


def test_bfloat16_of_other_libraries_is_taken_as_float32():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    W = np.random.default_rng(0).standard_normal((5, 3)).astype(ml_dtypes.bfloat16)
    for model in (W, (W, W[:, 0]), {"head.weight": W}):
        layer = sg.load(model).layer
        assert layer.W.dtype == np.float32
        np.testing.assert_array_equal(layer.W, W.astype(np.float32))
    np.testing.assert_array_equal(sg.SoftmaxLayer(W).W, W.astype(np.float32))


def test_a_checkpoint_of_lightning_is_read_at_the_layer_that_ends_its_network(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
    words = {"model.embed.weight": torch.rand(9, 4), "model.rnn.weight_ih_l0": torch.rand(12, 4)}
    words |= {"model.fc.weight": torch.rand(9, 4), "model.fc.bias": torch.rand(9)}
    last = {f"model.{name}": value for name, value in net.state_dict().items()}
    for state, name in ((last, "model.2"), (words, "model.fc")):
        around = {"epoch": 1, "pytorch-lightning_version": "2.5.0", "callbacks": {}, "loops": {}}
        moments = [{"state": {0: {"exp_avg": torch.ones(4, 4)}}, "param_groups": []}]
        around |= {"optimizer_states": moments, "hyper_parameters": {"lr": 0.1}}
        torch.save({**around, "state_dict": state}, tmp_path / "last.ckpt")
        head = load_head(tmp_path / "last.ckpt")
        assert head.names == {"weight": f"{name}.weight", "bias": f"{name}.bias"}
        np.testing.assert_array_equal(head.layer.W, state[f"{name}.weight"])


@pytest.mark.filterwarnings("ignore")
def test_quantised_tensors_are_codes():
    with pytest.raises(ValueError, match="codes, not weights"):
        load_head(torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8))


linear_model = pytest.importorskip("sklearn.linear_model")
X = np.random.default_rng(0).standard_normal((200, 3))
FIVE = np.array(list("vwxyz"))[np.argmax(X @ np.random.default_rng(1).standard_normal((3, 5)), 1)]
SEVERAL = X @ np.random.default_rng(2).standard_normal((3, 4)) > 0


def estimators():
    """Each linear model, and what it is fitted to: two classes, five, or several labels at once."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    logistic, two = linear_model.LogisticRegression, FIVE > "w"
    scaled = make_pipeline(StandardScaler(), logistic())
    search = GridSearchCV(scaled, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    rest = OneVsRestClassifier(logistic())
    descent = linear_model.SGDClassifier(loss="log_loss", random_state=0)
    analysis = LinearDiscriminantAnalysis()
    for model in (logistic(), rest, descent, analysis):
        yield from ((model, two), (model, FIVE))
    yield from ((scaled, FIVE), (search, FIVE), (rest, SEVERAL))
    yield linear_model.RidgeClassifier(), SEVERAL
    yield linear_model.SGDClassifier(random_state=0), FIVE


@pytest.mark.parametrize(("model", "target"), estimators(), ids=lambda it: type(it).__name__)
def test_linear_models_of_scikit_learn_decide_as_their_layer_does(model, target):
    head, inputs = sg.load(model.fit(X, target)), X
    pipeline = getattr(model, "best_estimator_", model)
    if hasattr(pipeline, "steps"):
        inputs = pipeline[:-1].transform(X)
        assert any("StandardScaler" in note for note in head.notes)
    scores = head.layer.logits(inputs)
    if target is SEVERAL:
        assert head.readout.rule == "threshold"
        np.testing.assert_array_equal(scores > 0, model.predict(X))
    else:
        names = np.array(head.layer.tokens)[scores.argmax(1)]
        np.testing.assert_array_equal(names, model.predict(X).astype(str))
    assert (head.readout.probability == "none") != hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        found = head.readout.probabilities(scores)
        np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


def test_models_of_scikit_learn_that_are_no_layer_are_refused():
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    for model, target, said in (
        (linear_model.LinearRegression(), SEVERAL, "LinearRegression is a regression"),
        (OneVsRestClassifier(GaussianNB()), FIVE, "GaussianNB of OneVsRestClassifier has no coef_"),
        (SVC(kernel="linear"), FIVE, "SVC decides between pairs"),
    ):
        with pytest.raises(ValueError, match=said):
            sg.load(model.fit(X, target))
