"""Behind the last product of an ONNX graph: what is accepted answers as the graph does.

The graphs run in onnxruntime. A table holds one row for each way in which a graph can treat its
scores; random chains of its rows look for ways that nobody thought of.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import softgeom as sg
from softgeom.checkpoints import load_head
from softgeom.checkpoints.rewriting import write_onnx

onnxruntime = pytest.importorskip("onnxruntime")
CLASSES, POSITIONS, FEATURES = 6, 2, 3
W = np.random.default_rng(0).standard_normal((CLASSES, FEATURES)).astype(np.float32)
B = np.random.default_rng(1).standard_normal(CLASSES).astype(np.float32)


class Graph:
    """A graph that grows by one operation at a time, from a product of x (1, 2, 3)."""

    def __init__(self, *, biased=True):
        self.nodes, self.constants, self.last = [], {}, "x"
        self.add("MatMul", W.T.copy())
        if biased:
            self.add("Add", B)

    def add(self, op, *constants, first=None, outputs=1, follow=0, **attributes):
        """One operation on the last value; ``first`` is a constant in front of it."""
        names = []
        for value in (first, *constants):
            name = f"c{len(self.constants)}"
            if value is not None:
                self.constants[name] = np.asarray(value)
                names.append(name)
        reads = [names.pop(0)] if first is not None else []
        made = [f"v{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(op, [*reads, self.last, *names], made, **attributes))
        self.last = made[follow]
        return self

    def join(self, op, *names, last_first=True):
        """One operation on the last value and earlier ones."""
        made, reads = f"v{len(self.nodes)}_0", [self.last, *names]
        self.nodes.append(helper.make_node(op, reads if last_first else reads[::-1], [made]))
        self.last = made
        return self

    def save(self, path, opset=17, ends=None):
        made = [helper.make_empty_tensor_value_info(name) for name in ends or [self.last]]
        shape = [1, POSITIONS, FEATURES]
        held = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        # every other constant is a node, as some exporters write them
        nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in held[::2]]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        graph = helper.make_graph([*nodes, *self.nodes], "g", [x], made, held[1::2])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        onnx.save(model, str(path))
        return path


def run(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def answers_agree(path, head, rng):
    """Whether the layer chooses, at each position, the class that the graph gives most."""
    for _ in range(8):
        x = 2 * rng.standard_normal((1, POSITIONS, FEATURES)).astype(np.float32)
        y, scores = run(path, x), head.layer.logits(x)[0]
        if y.dtype.kind == "i":  # the graph has chosen
            if (np.sort(y, axis=None) != np.sort(scores.argmax(axis=1))).any():
                return False
            continue
        (axis,) = (n for n, size in enumerate(y.shape) if size == head.layer.classes)
        if not y.size:  # every position was cut away
            return True
        rows = np.moveaxis(y, axis, -1).reshape(-1, head.layer.classes)
        # two that float32 does not tell apart may stand in any order
        leads = (np.diff(np.sort(values, axis=1)[:, -2:]).min() for values in (rows, scores))
        if not np.isfinite(rows).all() or not all(lead > 1e-5 for lead in leads):
            continue
        # a graph may keep one position, or repeat it
        if not set(rows.argmax(axis=1)) <= set(scores.argmax(axis=1)):
            return False
    return True


def _softmax_written_out(g, axis=-1):
    z = g.last
    g.add("ReduceMax", axes=[axis])
    g.join("Sub", z, last_first=False).add("Exp")
    e = g.last
    g.add("ReduceSum", [axis])
    return g.join("Div", e, last_first=False)


def _soft_cap(g):
    return g.add("Div", UP).add("Tanh").add("Mul", UP)


SMALL, PRIOR, UP = np.float32(1e-7), np.log(np.arange(1, CLASSES + 1, dtype="f4")), np.float32(3)
EACH = np.linspace(0.5, 2, CLASSES, dtype=np.float32)
GROUPS = [1, POSITIONS, 2, CLASSES // 2]
# what the graph does behind the product, whether it is accepted, or the word of the refusal
BEHIND = {
    "nothing": (lambda g: g, True),
    "a softmax": (lambda g: g.add("Softmax"), True),
    "a softmax over its axis from the front": (lambda g: g.add("Softmax", axis=2), True),
    "a softmax over time": (lambda g: g.add("Softmax", axis=1), "Softmax runs over another axis"),
    "a softmax written out": (_softmax_written_out, True),
    "a softmax over time written out": (lambda g: _softmax_written_out(g, 1), "Sub"),
    "a prior": (lambda g: g.add("LogSoftmax").add("Sub", PRIOR), True),
    "a prior with the bias": (lambda g: g.add("LogSoftmax").add("Add", PRIOR, first=None), True),
    "a vector times a softmax": (lambda g: g.add("Softmax").add("Mul", EACH), "Mul has a factor"),
    "a softmax over a vector": (lambda g: g.add("Softmax").add("Div", EACH), "Div has a factor"),
    "a prior behind a scale": (lambda g: g.add("Mul", UP).add("Sub", PRIOR), True),
    "a prior behind a temperature": (lambda g: g.add("Div", UP).add("Sub", PRIOR), True),
    "a scale for each class": (lambda g: g.add("Mul", EACH).add("Add", PRIOR), True),
    "a divisor for each class": (lambda g: g.add("Div", EACH), "Div has a factor for each class"),
    "a factor 0": (lambda g: g.add("Mul", np.float32(0)), "Mul has the factor 0"),
    "a negative factor": (lambda g: g.add("Mul", np.float32(-2)), True),
    "a constant less the scores": (lambda g: g.add("Sub", first=PRIOR), True),
    "a number for each position": (lambda g: g.add("Add", np.float32([[1], [2.5]])), True),
    "a number for each of both": (
        lambda g: g.add("Add", np.ones((POSITIONS, CLASSES), "f4")), "at each position"),
    "a constant that does not fit": (lambda g: g.add("Add", EACH[:5]), "do not fit"),
    "a soft cap": (lambda g: g.add("Div", UP).add("Tanh").add("Mul", UP), True),
    "a soft cap and a softmax": (
        lambda g: g.add("Div", UP).add("Tanh").add("Mul", UP).add("Softmax"), True),
    "a tanh": (lambda g: g.add("Tanh"), "Tanh ends in numbers from -1 to 1"),
    "a prior behind a soft cap": (
        lambda g: g.add("Tanh").add("Mul", UP).add("Add", PRIOR), "Add adds a number for each"),
    "a part of the classes": (lambda g: g.add("Slice", [1], [5], [-1]), True),
    "the classes backwards": (lambda g: g.add("Slice", [-1], [-99], [2], [-1]), True),
    "a part of time": (lambda g: g.add("Slice", [1], [2], [1]), True),
    "classes in another order": (lambda g: g.add("Gather", [3, 0, 5, 1], axis=2), True),
    "one position": (lambda g: g.add("Gather", np.int64(1), axis=1), True),
    "one class": (lambda g: g.add("Gather", np.int64(1), axis=2), "Gather takes classes out"),
    "a half of the classes": (
        lambda g: g.add("Split", [2, 4], outputs=2, follow=1, axis=-1).add("Softmax"), True),
    "groups": (lambda g: g.add("Reshape", GROUPS), "Reshape arranges the 6 scores in groups of 3"),
    "groups with a softmax": (lambda g: g.add("Reshape", GROUPS).add("Softmax"), "groups of 3"),
    "positions in one row": (lambda g: g.add("Reshape", [1, -1]), "Reshape to"),
    "a reshape of positions": (lambda g: g.add("Reshape", [-1, CLASSES]).add("Softmax"), True),
    "another order of axes": (
        lambda g: g.add("Transpose", perm=[2, 0, 1]).add("Softmax", axis=0), True),
    "another order of axes, another softmax": (
        lambda g: g.add("Transpose", perm=[2, 0, 1]).add("Softmax"), "Softmax runs over another"),
    "a constant behind another order": (
        lambda g: g.add("Transpose", perm=[0, 2, 1]).add("Add", PRIOR[:, None]), True),
    "a row of constants behind another order": (
        lambda g: g.add("Transpose", perm=[0, 2, 1]).add("Add", np.float32([1, 2])), True),
    "a new axis": (
        lambda g: g.add("Unsqueeze", [-1]).add("Softmax", axis=-2).add("Squeeze", [3]), True),
    "flattened positions": (lambda g: g.add("Flatten", axis=2).add("Softmax"), True),
    "flattened classes": (lambda g: g.add("Flatten", axis=1), "Flatten"),
    "the largest": (lambda g: g.add("ArgMax", axis=2, keepdims=0), True),
    "the least": (lambda g: g.add("ArgMin", axis=2, keepdims=0), True),
    "the largest over time": (lambda g: g.add("ArgMax", axis=1), "ArgMax runs over another"),
    "costs": (lambda g: g.add("LogSoftmax").add("Neg"), "are these costs"),
    "the least costs": (lambda g: g.add("LogSoftmax").add("Neg").add("ArgMin", axis=-1), True),
    "a mean over time": (lambda g: g.add("Softmax").add("ReduceMean", axes=[1]), "ReduceMean"),
    "a gate": (lambda g: (z := g.last, g.add("Sigmoid").join("Mul", z))[1], "Mul joins two"),
    "two layers": (
        lambda g: (z := g.last, setattr(g, "last", "x"), g.add("MatMul", W[::-1].T.copy()),
                   g.join("Add", z))[-1], "Add joins two"),
    "a ReLU": (lambda g: g.add("Relu"), "Relu ties scores"),
    "a ReLU before a softmax": (lambda g: g.add("Relu").add("Softmax"), None),
    "a clip of probabilities": (
        lambda g: g.add("Softmax").add("Clip", np.float32(1e-7), np.float32(1)).add("Log"), True),
    "a clip of part of them": (
        lambda g: g.add("Softmax").add("Slice", [1], [4], [-1]).add("Clip", SMALL), "Clip ties"),
    "a clip of larger ones": (
        lambda g: g.add("Softmax").add("Mul", np.float32([[9], [8]])).add("Clip", SMALL, UP),
        "Clip ties"),
    "a clip of what a prior leaves": (
        lambda g: g.add("LogSoftmax").add("Sub", PRIOR).add("Exp").add("Clip", SMALL, UP),
        "Clip ties"),
    "a clip of capped logarithms": (
        lambda g: _soft_cap(g).add("Softmax").add("Log").add("Clip", -UP, UP), "Clip ties"),
    "a sigmoid of a softmax": (lambda g: g.add("Softmax").add("Sigmoid"), "behind another map"),
    "a sigmoid of a soft cap": (lambda g: _soft_cap(g).add("Sigmoid"), "behind another map"),
    "a sigmoid by its tanh": (
        lambda g: g.add("Tanh").add("Add", np.float32(1)).add("Mul", np.float32(0.5)),
        "Add adds to a tanh"),
    "numbers of classes by a list": (
        lambda g: g.add("ArgMax", axis=2).add("Gather", first=np.arange(CLASSES)[::-1].copy()),
        "Gather makes other numbers"),
    "numbers of classes from 1 on": (
        lambda g: g.add("ArgMax", axis=2).add("Add", np.int64(1)), "Add makes other numbers"),
    "numbers of classes as yes and no": (
        lambda g: g.add("ArgMax", axis=2).add("Cast", to=9), "Cast makes other numbers"),
    "numbers of classes as floats": (
        lambda g: g.add("ArgMax", axis=2, keepdims=0).add("Cast", to=7), True),
    "a class that there is not": (
        lambda g: g.add("Gather", [0, 9], axis=2), "classes that are not among the 6"),
    "a clip of scores": (lambda g: g.add("Clip", -UP, UP), "Clip ties scores"),
    "a sigmoid": (lambda g: g.add("Sigmoid"), True),
    "a sigmoid written out": (
        lambda g: g.add("Neg").add("Exp").add("Add", first=np.float32(1)).add("Reciprocal"),
        "Reciprocal is not followed"),
    "the negative of the scores": (lambda g: g.add("Neg").add("Softmax"), True),
    "the least of some": (
        lambda g: g.add("TopK", np.array([1]), outputs=2, follow=1, largest=0, axis=-1), True),
    "one less a sigmoid": (
        lambda g: g.add("Sigmoid").add("Sub", first=np.float32(1)), "where a sigmoid says"),
    "whole numbers": (lambda g: g.add("Cast", to=6), "Cast rounds"),
    "a concatenation": (lambda g: g.add("Concat", np.ones((1, 2, 2), "f4"), axis=-1), "Concat"),
}  # fmt: skip


@pytest.mark.parametrize("name", BEHIND)
def test_what_is_accepted_answers_as_the_graph_does_and_all_else_is_refused(tmp_path, name):
    behind, accepted = BEHIND[name]
    graph = Graph()
    behind(graph)
    path = graph.save(tmp_path / "m.onnx", opset=13 if "ReduceM" in str(graph.nodes) else 17)
    if isinstance(accepted, str):
        with pytest.raises(ValueError, match=accepted):
            load_head(path)
        return
    head = load_head(path)
    if accepted:  # else zeros tie
        assert answers_agree(path, head, np.random.default_rng(2))


def _greatest_of_constants(g):
    z = g.last
    return g.add("ReduceMax", axes=[-1]).add("Max", 3 * EACH).join("Add", z)


def _sum_over_nothing(g):
    z = g.last
    return g.add("Neg").add("ReduceSum", noop_with_empty_axes=1).join("Add", z)


@pytest.mark.parametrize("behind", [_greatest_of_constants, _sum_over_nothing])
def test_what_differs_from_class_to_class_is_seen_where_no_shape_is_known(tmp_path, behind):
    path = behind(Graph()).save(tmp_path / "m.onnx", opset=13)
    model = onnx.load(str(path))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, str(path))
    with pytest.raises(ValueError, match="Add joins two"):
        load_head(path)


def test_a_declared_shape_that_is_wrong_is_not_believed(tmp_path):
    graph = Graph()
    z = graph.last
    path = graph.add("Neg").add("Identity").join("Add", z).save(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    wrong = helper.make_tensor_value_info(graph.nodes[-2].output[0], TensorProto.FLOAT, [1, 2, 1])
    model.graph.value_info.append(wrong)
    onnx.save(model, str(path))
    with pytest.raises(ValueError, match="Add joins two"):
        load_head(path)


def test_a_function_of_the_file_is_not_the_operation_of_its_name(tmp_path):
    """It adds a constant, and is called Softmax."""
    path = Graph().add("Softmax").save(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    model.graph.node[-1].domain = "mine"
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(9 * EACH))
    body, opset = helper.make_node("Add", ["x", "c"], ["y"]), [helper.make_opsetid("", 17)]
    model.functions.append(
        helper.make_function("mine", "Softmax", ["x"], ["y"], [constant, body], opset)
    )
    model.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(model, str(path))
    assert run(path, np.ones((1, POSITIONS, FEATURES), np.float32)).max() > 9
    with pytest.raises(ValueError, match="mine::Softmax is not followed"):
        load_head(path)


def test_scores_that_become_codes_are_told(tmp_path):
    codes = np.float32(0.5), np.uint8(0)
    graph = Graph().add("QuantizeLinear", *codes).add("DequantizeLinear", *codes)
    notes = load_head(graph.save(tmp_path / "m.onnx")).notes
    assert sum("rounds its scores to codes" in note for note in notes) == 1


# what the graph does behind the product, whether the layer can be cut in it
CUT = {
    "a softmax": (lambda g: g.add("Softmax"), True),
    "a reshape": (lambda g: g.add("Reshape", [1, 2, -1]), True),
    "two of the classes": (
        lambda g: g.add("TopK", np.array([2]), outputs=2, follow=1, axis=-1), True),
    "all of the classes": (
        lambda g: g.add("TopK", np.array([6]), outputs=2, follow=1, axis=-1), False),
    "a reshape to their number": (lambda g: g.add("Reshape", [1, 2, 6]), False),
    "a choice of all": (lambda g: g.add("Gather", np.arange(6), axis=2), False),
    "another product": (lambda g: g.add("Identity").add("MatMul", np.ones((6, 2), "f4")), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_a_graph_that_counts_on_the_number_of_classes_is_not_rewritten(tmp_path, name):
    behind, can = CUT[name]
    graph = Graph()
    z, out = graph.last, tmp_path / "new.onnx"
    path = behind(graph).save(tmp_path / "m.onnx", ends=[graph.last, z])
    weight = "c0" if name == "another product" else None
    layer = sg.SoftmaxLayer(W[:4], B[:4])
    if can:
        write_onnx(path, out, layer, weight)
        assert run(out, np.ones((1, POSITIONS, FEATURES), np.float32)).shape[-1] in (2, 4)
        return
    with pytest.raises(ValueError, match="counts on the number of classes"):
        write_onnx(path, out, layer, weight)
    assert not out.exists()


@pytest.mark.parametrize("name", ["a part of the classes", "classes in another order", "a prior"])
def test_a_graph_that_treats_classes_apart_is_not_rewritten(tmp_path, name):
    out, layer = tmp_path / "new.onnx", sg.SoftmaxLayer(W[:4], B[:4])
    path = BEHIND[name][0](Graph()).save(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match=r"picks the classes|adds more to its scores"):
        write_onnx(path, out, layer)
    assert not out.exists()


def test_weights_in_a_file_beside_stay_beside(tmp_path):
    path = Graph().save(tmp_path / "m.onnx")
    held = {"location": "m.data", "size_threshold": 0, "convert_attribute": True}
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, **held)
    (tmp_path / "far").mkdir()
    layer, x = sg.SoftmaxLayer(W[:4], B[:4]), np.ones((1, POSITIONS, FEATURES), np.float32)
    with pytest.raises(ValueError, match="name a new file in its folder"):
        write_onnx(path, tmp_path / "far" / "new.onnx", layer)
    write_onnx(path, tmp_path / "new.onnx", layer)
    assert run(tmp_path / "new.onnx", x).shape == (1, POSITIONS, 4)


def test_a_scale_of_all_scores_leaves_the_weights_as_they_are(tmp_path):
    path = Graph().add("Div", UP).add("Softmax").save(tmp_path / "m.onnx")
    head = load_head(path)
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, B)
    assert head.readout.scale == 1 / 3


FOLLOWED = [name for name, (_, accepted) in BEHIND.items() if accepted is True]


def trial(path, seed, counts):
    rng = np.random.default_rng(seed)
    graph = Graph(biased=rng.random() < 0.7)
    for name in (*rng.choice(FOLLOWED, rng.integers(1, 3)), rng.choice(list(BEHIND))):
        BEHIND[name][0](graph)
    graph.save(path, opset=13)
    try:
        y = run(path, np.ones((1, POSITIONS, FEATURES), np.float32))
    except Exception:  # a graph that no runtime runs
        return
    try:
        head = load_head(path)
    except ValueError:
        counts["refused"] = counts.get("refused", 0) + 1
        return
    if head.layer.classes not in y.shape or y.shape.count(head.layer.classes) > 1:
        counts["unclear"] = counts.get("unclear", 0) + 1
        return
    tied = any("ties" in note for note in head.notes) or not np.isfinite(y).all()
    counts["accepted"] = counts.get("accepted", 0) + 1
    assert tied or answers_agree(path, head, rng), (
        f"seed {seed}: {[n.op_type for n in graph.nodes]}"
    )


def test_random_chains_of_the_table_are_followed_or_refused(tmp_path):
    counts = {}
    for seed in range(250):
        trial(tmp_path / "m.onnx", seed, counts)
    assert counts["accepted"] > 30
    assert counts["refused"] > 30
