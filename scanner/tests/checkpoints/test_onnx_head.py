"""The last layer of ONNX graphs as exporters write them; damage ends in a sentence."""

import json

import numpy as np
import onnx
import pytest
import scipy.special
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from softgeom.checkpoints import load_head, load_softmax_layer
from softgeom.checkpoints.activation import RELU_BEHIND
from softgeom.cli import main
from softgeom.layer import Box

node = helper.make_node


def _nodes(rows: str) -> list[onnx.NodeProto]:
    """One node for each row ``Op input ... > output ...; attributes in JSON``; _ is no input."""
    made = []
    for row in filter(None, map(str.strip, rows.splitlines())):
        named, _, attributes = row.partition(";")
        (op, *inputs), outputs = (side.split() for side in named.split(">"))
        inputs = [name.strip("_") for name in inputs]
        made.append(node(op, inputs, outputs, **json.loads(attributes or "{}")))
    return made


def _save(path, nodes, constants, outputs=("y",), opset=17, metadata=None, **options):
    graph = helper.make_graph(
        _nodes(nodes) if isinstance(nodes, str) else nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path), **options)
    return path


def _answers(path, rows: int):
    """Random inputs (rows, 3), and what the graph's first output is for them."""
    x = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
    return x, ReferenceEvaluator(str(path)).run(None, {"x": x})[0]


W, B = np.split(np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32), [3], axis=1)
B = B[:, 0]
PLAIN = """
    Relu x > h
    MatMul h W > xW
    Add b xW > logits
    Softmax logits > y
"""
HELD = {"W": W.T.copy(), "b": B}  # its constants


SCALES = (np.abs(W).max(axis=1) / 127).astype(np.float32)  # one per class
CODES = np.round(W / SCALES[:, None]).astype(np.int8)
CODED = {"b": B, "scales": SCALES, "zero": np.zeros(7, np.int8)}
CONVOLVED = (
    "Unsqueeze x axes > wide \n Conv wide W b > maps \n Squeeze maps axes > z \n Softmax z > y"
)
REAL = "DequantizeLinear W scales zero > real"
GRAPHS = {
    "a Gemm and its scales": ('Gemm x W b > y; {"alpha": 2.0, "beta": 0.5}', {"W": W.T, "b": B}),
    "a transposed Gemm": ('Gemm x W b > y; {"transB": 1, "beta": 0.5}', {"W": W, "b": B}),
    "a constant behind a transpose, an output behind a reshape": (
        'Transpose W > Wt; {"perm": [1, 0]} \n MatMul x Wt > logits \n Reshape logits shape > y',
        {"W": W, "shape": np.array([-1, 7])}),
    "weights behind a dequantisation": (
        f'{REAL}; {{"axis": 1}} \n MatMul x real > xW \n Add b xW > y', {"W": CODES.T, **CODED}),
    "weights behind a dequantisation and a transpose": (
        f'{REAL}; {{"axis": 0}} \n Transpose real > turned \n MatMul x turned > xW \n Add b xW > y',
        {"W": CODES, **CODED}),
    "a convolution of one pixel": (CONVOLVED, {"W": W[..., None], "b": B, "axes": np.array([2])}),
    "a convolution of one pixel in the plane": (
        CONVOLVED, {"W": W[..., None, None], "b": B, "axes": np.array([2, 3])}),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_the_layer_gives_what_the_graph_computes(tmp_path, name):
    opset = 21 if "dequantisation" in name else 17  # as the reference has them
    path = _save(tmp_path / "m.onnx", *GRAPHS[name], opset=opset)
    x, answers = _answers(path, 20)
    head = load_head(path)
    found = head.readout.logits(head.layer.logits(x))
    if (answers > 0).all():  # probabilities
        found = scipy.special.softmax(found, axis=1)
    np.testing.assert_allclose(found, answers, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(load_softmax_layer(path, weight="W").W.shape, (7, 3))


FIRST = np.eye(3, dtype=np.float32)
TWO_LAYERS = 'MatMul x first > h \n Tanh h > t \n Gemm t W b > y; {"transB": 1}'
TWO_HEADS = "MatMul x W > y \n MatMul x V > z"
CACHED = "MatMul x W > y \n MatMul x K > k \n Reshape k heads > q \n Transpose q > present.0.key"
LATE = "MatMul x W > z \n Reshape z places > z3 \n Add z3 b > a \n {0} a > y"
TWO = {"first": FIRST, "W": W, "b": B, "V": 2 * W.T[:, :5], "heads": np.array([1, -1, 3])}
TWO |= {"K": FIRST, "places": np.array([1, -1, 7])}
CUT = PLAIN.replace("Softmax logits > y", "Relu logits > cut \n Softmax cut > y")
# the graph, its outputs, the weight that is named, and W and b
READ = {
    "a layer and a softmax": (PLAIN, "y", None, W, B),
    "a ReLU between layer and softmax": (CUT, "y", None, W, B),
    "the last of two layers": (TWO_LAYERS, "y", None, W, B),
    "a layer inside, named": (TWO_LAYERS, "y", "first", FIRST, None),
    "one of two heads, named": (TWO_HEADS, "y z", "V", 2 * W[:5], None),
    "keys and values of a decoder are no heads": (CACHED, "y present.0.key", None, W, None),
    "a bias behind a reshape": (LATE.format("Softmax"), "y", "W", W, B),
    "a bias behind a reshape, before what is not followed": (LATE.format("Tanh"), "y", "W", W, B),
}


@pytest.mark.parametrize("name", READ)
def test_the_layer_that_the_answer_comes_from_is_read(tmp_path, name):
    rows, outputs, weight, expected, bias = READ[name]
    constants = TWO | {"W": W if rows is TWO_LAYERS else W.T}
    head = load_head(_save(tmp_path / "m.onnx", rows, constants, outputs.split()), weight=weight)
    np.testing.assert_array_equal(head.layer.W, expected)
    np.testing.assert_array_equal(head.layer.b, bias)
    assert (RELU_BEHIND in head.notes) == (rows is CUT)


def test_a_bfloat16_graph_is_read_exactly(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    narrow = W.astype(ml_dtypes.bfloat16)
    path = _save(tmp_path / "m.onnx", "MatMul x W > y", {"W": narrow.T})
    np.testing.assert_array_equal(load_head(path).layer.W, narrow.astype(np.float32))


BESIDE = {"save_as_external_data": True, "location": "w.data", "size_threshold": 0}


@pytest.mark.parametrize("moved", [False, True])
def test_data_beside_the_file_are_read_and_elsewhere_refused(tmp_path, moved):
    folder = tmp_path / "inner"
    folder.mkdir()
    path = _save(folder / "m.onnx", PLAIN, HELD, **BESIDE)
    np.testing.assert_array_equal(load_softmax_layer(path).W, W)
    (folder / "w.data").rename(tmp_path / "w.data")
    if moved:
        model = onnx.load(str(path), load_external_data=False)
        for entry in (e for tensor in model.graph.initializer for e in tensor.external_data):
            entry.value = "../w.data" if entry.key == "location" else entry.value
        path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"cannot be read .*w\.data"):
        load_softmax_layer(path)


@pytest.mark.parametrize("ending", ["", "\n"])
def test_characters_in_the_metadata_name_the_classes(tmp_path, ending):
    letters = {"character": "a\nb\nc\nd\ne" + ending}
    path = _save(tmp_path / "m.onnx", PLAIN, HELD, metadata=letters)
    assert load_softmax_layer(path).tokens == ("<blank>", "a", "b", "c", "d", "e", " ")


def _sized(path, *dims):
    """A graph whose W declares other sizes."""
    model = onnx.load(str(_save(path, "MatMul x W > y", {"W": W.T})))
    model.graph.initializer[0].dims[:] = dims
    onnx.save(model, str(path))
    return path


MISFIT = "MatMul x W > xW \n Mul xW b > s \n Mul s short > logits \n Softmax logits > y"
SHORT, UNFIT = HELD | {"short": B[:5]}, r"shape \(5,\), and 7 classes: they do not fit"
ONE = {"w": np.ones((3, 1), "f4"), "b": np.ones(17, "f4")}
NONE = "no matrix product|is not a constant|cannot be read"
REFUSED = {
    "a tanh": ("MatMul x W > h \n Tanh h > y", HELD, r"Tanh ends in numbers.*W \(3, 7\)"),
    "a convolution": ("Conv x W > y", {"W": np.ones((7, 3, 3), "f4")}, NONE),
    "two heads": (TWO_HEADS, {"W": W.T, "V": W.T[:, :5]}, r"several heads.*W \(3, 7\), V \(3, 5\)"),
    "one score and a bias for each place": (
        "MatMul x w > one \n Add one b > many \n Sigmoid many > y", ONE, "1 classes: they do not"),
    "one score": ("MatMul x w > one \n Sigmoid one > y", ONE, "1 class has nothing"),
    "a product that does not fit": (MISFIT, SHORT, UNFIT),
    "Identity in a circle": ("Identity y > a \n Identity a > y", HELD, NONE),
    "Softmax in a circle": ("Softmax b0 > y \n Softmax y > b0", HELD, NONE),
    "a weight in a circle": ("Identity V > w \n Identity w > V \n MatMul x w > y", HELD, NONE),
    "a product without inputs": ("MatMul > y", HELD, NONE),
    "a softmax without inputs": ("Softmax > y", HELD, NONE),
    "a constant without outputs": ('Constant >; {"value_float": 1.0} \n Softmax x > y', HELD, NONE),
    "a cast to no type": ('Cast W > w; {"to": 999} \n MatMul x w > y', HELD, NONE),
    "no layer": ("Relu x > y", HELD, NONE),
    "negative sizes": (lambda path: _sized(path, -3, -7), None, "impossible shape"),
    "large sizes": (lambda path: _sized(path, 2**40, 2**20), None, "more numbers than the file"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_graph_that_ends_in_no_layer_is_refused(tmp_path, case):
    rows, constants, said = REFUSED[case]
    path, outputs = tmp_path / "m.onnx", ("y", "z") if rows is TWO_HEADS else ("y",)
    path = rows(path) if callable(rows) else _save(path, rows, constants, outputs)
    with pytest.raises(ValueError, match=rf"m\.onnx.*({said})"):
        load_head(path)
    if said is NONE:
        for weight in ("W", "w"):
            with pytest.raises(ValueError, match=rf"m\.onnx.*({said})"):
                load_head(path, weight=weight)


def test_dynamically_quantised_products_give_the_real_weights(tmp_path):
    scale = (np.abs(W).max() / 127).astype(np.float32)
    codes = np.round(W / scale).astype(np.int8)
    rows = """
        DynamicQuantizeLinear x > xq xs xz
        MatMulInteger xq W xz wz > products
        Cast products > floats; {"to": 1}
        Mul xs ws > factor
        Mul floats factor > xW
        Add xW b > logits
        Softmax logits > y
    """
    path = _save(tmp_path / "m.onnx", rows, {"W": codes.T, "b": B, "wz": np.int8(3), "ws": scale})
    head = load_head(path)
    np.testing.assert_allclose(head.layer.W, (codes.astype(float) - 3) * scale, rtol=1e-6)
    np.testing.assert_array_equal(head.layer.b, B)
    assert any("quantised product" in note for note in head.notes)
    x, runtime = _answers(path, 50)
    # the runtime rounds the features
    assert (runtime.argmax(1) == head.layer.logits(x).argmax(1)).mean() > 0.9


PARTS = "\n Concat"
TAKEN = '; {"axis": 1} \n Slice p begin end axis > h'
PARTED = f"Relu x > r \n Clip x low six > c {PARTS} r c > p {TAKEN}"


@pytest.mark.parametrize(
    ("before", "constants", "low", "high"),
    [
        ("Relu x > h", {}, 0, 100),
        ("Sigmoid x > s \n Mul x s > h", {}, -0.2785, 100),
        ("Mul x two > d \n Sigmoid d > s \n Mul s x > h", {"two": 2}, -0.2785 / 2, 100),
        ("Tanh x > t \n Mul t c > h", {"c": -3}, -3, 3),
        ("Relu x > r \n Add r x > h", {}, -100, 100),
        ("Clip x zero six > h", {"zero": 0, "six": 6}, 0, 6),
        ("Clip x _ six > h", {"six": 6}, -100, 6),
        ("Relu x > r \n Clip x _ r > h", {}, -100, 100),
        ("HardSigmoid x > h", {}, 0, 1),
        ("Sigmoid x > s \n Tanh x > t \n Mul s t > h", {}, -1, 1),
        ("Clip x one six > c \n Mul c half > h", {"one": 1, "six": 6, "half": 0.5}, 0.5, 3),
        ("Clip x six one > c \n Mul c half > h", {"one": -1, "six": -6, "half": -0.5}, 0.5, 3),
        ("Clip x low high > h", {"low": -500, "high": 700}, -500, 700),
        ("Clip x zero six > c \n Mul c big > h", {"zero": 0, "six": 6, "big": 1e3}, 0, 6e3),
        ("Clip x low _ > h", {"low": 150}, 150, 250),
        ("Clip x _ high > h", {"high": -150}, -250, -150),
        ("Relu x > r \n Mul r zero > h", {"zero": 0}, -100, 100),
        ('QuickGelu x > h; {"alpha": 0.125}', {}, -0.2785 / 0.125, 100),
        (PARTED, {"low": -2, "six": 6}, -2, 100),
        (f"Tanh x > r {PARTS} r x > p {TAKEN}", {}, -100, 100),
    ],
)
def test_the_step_before_the_layer_bounds_its_features(tmp_path, before, constants, low, high):
    constants = {name: np.float32(value) for name, value in constants.items()}
    if TAKEN in before:  # three of the six
        constants |= {"begin": np.array([2]), "end": np.array([5]), "axis": np.array([1])}
    rows = f"{before}\nMatMul h W > y"
    path = _save(tmp_path / "m.onnx", rows, {"W": W.T, **constants})
    features, _ = load_head(path).feature_set()
    assert (features.low, features.high) == pytest.approx((low, high), rel=1e-5)
    assert features.low <= low
    assert features.high >= high
    if "QuickGelu" in before:  # of onnxruntime, which the reference does not know
        return
    probe = _save(tmp_path / "probe.onnx", before, constants, outputs=("h",))
    x = np.random.default_rng(0).uniform(-9, 9, (200, 3)).astype(np.float32)
    h = ReferenceEvaluator(str(probe)).run(None, {"x": x})[0]
    assert h.min() >= features.low - 1e-6
    assert h.max() <= features.high + 1e-6


def test_a_nest_of_parts_takes_no_longer_than_its_parts(tmp_path):
    """A part is in two of the next: 2^40 ways lead back to the first; and a chain of thousands."""
    deep = "\n".join(
        f'Identity p{n} > q{n} \n Concat p{n} q{n} > p{n + 1}; {{"axis": 0}}' for n in range(40)
    )
    long = "\n".join(f'Concat p{n} > p{n + 1}; {{"axis": 0}}' for n in range(3000))
    for nest, last, low in ((deep, 40, -1), (long, 3000, -100)):
        rows = f"Tanh x > p0 \n {nest} \n MatMul p{last} W > y"
        path = _save(tmp_path / "m.onnx", rows, {"W": W.T})
        assert load_head(path).feature_set()[0].low == low


def test_a_small_layer_is_told_over_the_networks_own_set_too(tmp_path, capsys, monkeypatch):
    """The second class wins at negative features alone, which a ReLU never lets through."""
    monkeypatch.chdir(tmp_path)
    W = np.array([[1, 0, 0], [-1, -1, -1], [0, 1, 0], [0, 0, 1]], np.float32)
    path = _save(tmp_path / "m.onnx", "Relu x > h \n MatMul h W > y", {"W": W.T.copy()})
    assert main(["scan", str(path)]) == 0
    told = capsys.readouterr().out
    assert "unargmaxable: 0" in told
    assert "1 can never win from 0 to 100 (ReLU in front of the layer" in told
    assert main(["scan", str(path), "--features", "auto"]) == 0
    told = capsys.readouterr().out
    assert "unargmaxable: 1" in told
    assert "can never win from" not in told


WRITTEN_OUT = """
    ReduceMean x > mean; {"axes": [-1]}
    Sub x mean > c
    Pow c two > sq
    ReduceMean sq > var; {"axes": [-1]}
    Add var eps > v
    Sqrt v > sd
    Div c sd > n
    Mul n gain > g
    Add g shift > h
"""
NUMBERS = {"two": 2, "four": 4, "eps": 1e-5, "less": -0.2, "shift": [0.1, 0.2, 0.3]}
NUMBERS = {name: np.float32(number) for name, number in NUMBERS.items()}
NUMBERS |= {"begin": np.array([-1]), "end": np.array([-99]), "step": np.array([-1])}
NUMBERS |= {"axis": np.array([1]), "order": np.array([2, 1, 0]), "five": np.full((1, 1, 3), 5.0)}


def test_a_layer_norm_written_out_gives_its_ellipsoid(tmp_path):
    gain = np.array([1.0, 2.0, 3.0], np.float32)
    rows = f"{WRITTEN_OUT} \n MatMul h W > y"
    path = _save(tmp_path / "m.onnx", rows, NUMBERS | {"W": W.T, "gain": gain})
    features, why = load_head(path).feature_set()
    assert features.centred
    np.testing.assert_array_equal(features.gain, gain)
    np.testing.assert_array_equal(features.bias, NUMBERS["shift"])
    assert "LayerNorm" in why


PARTS_OF_A_ROW = """
    Concat x x > wide; {"axis": 1}
    Reshape wide halves > t
    LayerNormalization t gain > n m s; {"axis": -1}
    Flatten n > h; {"axis": 1}
    Gemm h W b > y
"""
COLUMNS = """
    LayerNormalization x gain > n m s; {"axis": -1}
    Gemm n W b > y; {"transA": 1}
"""


@pytest.mark.parametrize(
    ("rows", "stored"), [(PARTS_OF_A_ROW, np.concatenate([W.T, W.T])), (COLUMNS, W.T)]
)
def test_a_norm_of_other_numbers_than_the_features_confines_nothing(tmp_path, rows, stored):
    constants = {"halves": np.array([-1, 2, 3]), "gain": np.ones(3, "f4"), "b": B, "W": stored}
    path = _save(tmp_path / "m.onnx", rows, constants)
    assert load_head(path).feature_set()[0] == Box(100.0)


NORM = 'LayerNormalization x gain > n m s; {"axis": -1}'
GRU = 'GRU x w r _ _ %s > p h; {"hidden_size": 3}'
SLICE = "Slice n begin end axis step > h"


UNCONFINED = {
    "a norm, its features backwards": f"{NORM} \n {SLICE}",
    "a norm, its features in another order": f'{NORM} \n Gather n order > h; {{"axis": 1}}',
    "a norm, turned": f"{NORM} \n Transpose n > h",
    "a norm over time written out": WRITTEN_OUT.replace("-1", "0"),
    "a norm of fourth powers": WRITTEN_OUT.replace("two", "four"),
    "a norm less a number": WRITTEN_OUT.replace("eps", "less"),
    "a GRU from a state of the caller's": GRU % "start",
    "a GRU from a large state": GRU % "five",
    "the maximum of a norm": f'{NORM} \n ReduceMax n > h; {{"axes": [0], "keepdims": 1}}',
    "a norm over two axes": NORM.replace("-1", "-2") + "\n Identity n > h",
    "the scale of a norm": f"{NORM} \n Identity s > h",
    "the cells of an LSTM": 'LSTM x w r > p q h; {"hidden_size": 3}',
    "an LSTM behind a ReLU": (
        'LSTM x w r > p h; {"hidden_size": 3, "activations": ["Sigmoid", "Tanh", "Relu"]}'
    ),
    "a GRU whose gate is a tanh": (
        'GRU x w r > p h; {"hidden_size": 3, "activations": ["Tanh", "Tanh"]}'
    ),
}


@pytest.mark.parametrize("name", UNCONFINED)
def test_what_does_not_confine_the_features_is_not_said_to(tmp_path, name):
    before, constants = UNCONFINED[name], NUMBERS | {"gain": np.float32([1, 1, 10])}
    path = _save(tmp_path / "m.onnx", f"{before}\nMatMul h W > y", {"W": W.T, **constants})
    assert load_head(path).feature_set()[0] == Box(100.0)
    if "norm" in name and "scale" not in name:
        path = _save(tmp_path / "m.onnx", before, constants, outputs=("h",))
        x = np.float32([[1, 0, 0], [1, 3, 0], [0, 0, 2]])
        h = ReferenceEvaluator(str(path)).run(None, {"x": x})[0]
        u = (h - ("shift" in before) * constants["shift"]) / constants["gain"]
        assert np.linalg.norm(u, axis=1).max() > 1.01 * np.sqrt(3)


def test_a_very_long_chain_is_walked(tmp_path):
    chain = [node("Identity", [f"v{n}"], [f"v{n + 1}"]) for n in range(20_000)]
    for before, after in (
        ("MatMul x W > v0", "Identity v20000 > y"),
        ("Identity W > v0", "MatMul x v20000 > y"),
    ):
        path = _save(tmp_path / "m.onnx", [*_nodes(before), *chain, *_nodes(after)], {"W": W.T})
        assert load_softmax_layer(path).classes == 7
