"""TFLite files, written here with Google's own FlatBuffers: the last layer, its bias, what stands
before it, and damaged files.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from softgeom.checkpoints import load_head
from softgeom.cli import main

flatbuffers = pytest.importorskip(
    "flatbuffers", reason="FlatBuffers is not installed (it comes with onnxruntime)"
)

RELU, CONV_OPTIONS, DENSE_OPTIONS, NO_OPTIONS = 1, 1, 8, 0
FULLY_CONNECTED, CONV, MEAN, LOGISTIC, DEQUANTIZE = 9, 3, 40, 14, 6


class Writer:
    """The few tables of a TFLite file."""

    def __init__(self) -> None:
        self.b = flatbuffers.Builder(1024)

    def table(self, fields: dict[int, tuple[str, int]], count: int) -> int:
        self.b.StartObject(count)
        for field, (kind, value) in fields.items():
            {
                "offset": self.b.PrependUOffsetTRelativeSlot,
                "byte": self.b.PrependInt8Slot,
                "int": self.b.PrependInt32Slot,
            }[kind](field, value, -1 if kind != "offset" else 0)
        return self.b.EndObject()

    def vector(self, values, kind: str) -> int:
        size = {"offset": 4, "int": 4, "byte": 1}[kind]
        self.b.StartVector(size, len(values), size)
        add = {
            "offset": self.b.PrependUOffsetTRelative,
            "int": self.b.PrependInt32,
            "byte": self.b.PrependUint8,
        }[kind]
        for value in reversed(values):
            add(int(value))
        return self.b.EndVector()


def write(path, tensors, operators, outputs) -> str:
    """tensors: (name, shape, type, bytes); operators: (code, inputs, outputs, options, field of
    what is fused, fused).
    """
    w = Writer()
    buffers = [
        w.table({0: ("offset", w.b.CreateByteVector(data))} if data else {}, 3)
        for *_, data in tensors
    ]
    made = []
    for n, (name, shape, kind, _) in enumerate(tensors):
        fields = {
            0: ("offset", w.vector(shape, "int")),
            1: ("byte", kind),
            2: ("int", n),
            3: ("offset", w.b.CreateString(name)),
        }
        made.append(w.table(fields, 8))
    codes = sorted({code for code, *_ in operators})
    ops = []
    for code, inputs, outs, options, field, fused in operators:
        fields = {
            0: ("int", codes.index(code)),
            1: ("offset", w.vector(inputs, "int")),
            2: ("offset", w.vector(outs, "int")),
        }
        if options:
            fields |= {3: ("byte", options), 4: ("offset", w.table({field: ("byte", fused)}, 5))}
        ops.append(w.table(fields, 9))
    graph = w.table(
        {
            0: ("offset", w.vector(made, "offset")),
            2: ("offset", w.vector(outputs, "int")),
            3: ("offset", w.vector(ops, "offset")),
        },
        5,
    )
    listed = [w.table({0: ("byte", code), 3: ("int", code)}, 4) for code in codes]
    fields = {
        1: w.vector(listed, "offset"),
        2: w.vector([graph], "offset"),
        4: w.vector(buffers, "offset"),
    }
    w.b.Finish(
        w.table({0: ("int", 3), **{k: ("offset", v) for k, v in fields.items()}}, 8),
        file_identifier=b"TFL3",
    )
    path.write_bytes(w.b.Output())
    return str(path)


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 3)).astype("<f4"), rng.normal(size=5).astype("<f4")


def classifier(path, W, b, *, before=(CONV, CONV_OPTIONS, 3, RELU), fused=0, half=False) -> str:
    """A step, a mean over positions, the layer, a sigmoid."""
    code, options, field, kind = before
    tensors = [
        ("pixels", (1, 8, 8, 3), 0, b""),
        ("maps", (1, 4, 4, 3), 0, b""),
        ("pooled", (1, 3), 0, b""),
        ("head/W", W.shape, 1 if half else 0, (W.astype("<f2") if half else W).tobytes()),
        ("head/b", b.shape, 0, b.tobytes()),
        ("logits", (1, 5), 0, b""),
        ("answer", (1, 5), 0, b""),
        ("widened", W.shape, 0, b""),
    ]
    weight = 7 if half else 3
    operators = [
        (code, [0], [1], options, field, kind),
        (MEAN, [1, 1], [2], NO_OPTIONS, 0, 0),
        *([(DEQUANTIZE, [3], [7], NO_OPTIONS, 0, 0)] if half else []),
        (FULLY_CONNECTED, [2, weight, 4], [5], DENSE_OPTIONS, 0, fused),
        (LOGISTIC, [5], [6], NO_OPTIONS, 0, 0),
    ]
    return write(path, tensors, operators, [6])


@pytest.mark.parametrize("half", [False, True])
def test_the_layer_before_the_output_its_bias_and_the_step_before_it(tmp_path, weights, half):
    W, b = weights
    head = load_head(classifier(tmp_path / "m.tflite", W, b, half=half))
    np.testing.assert_array_equal(
        head.layer.W, W.astype("<f2").astype(head.layer.W.dtype) if half else W
    )
    np.testing.assert_array_equal(head.layer.b, b)
    assert head.names == {"weight": "head/W", "bias": "head/b"}
    assert head.activation is not None
    assert (head.activation.name, head.activation.low) == ("ReLU", 0.0)


def test_a_step_that_bounds_nothing_and_a_bias_that_is_left_out(tmp_path, weights):
    path = classifier(tmp_path / "m.tflite", *weights, before=(CONV, CONV_OPTIONS, 3, 0))
    assert load_head(path).activation is None
    assert load_head(path, without_bias=True).layer.b is None
    assert load_head(path, weight="head/W").layer.classes == 5


def test_the_command_line_reads_it(tmp_path, weights, capsys):
    path = classifier(tmp_path / "m.tflite", *weights)
    assert main(["inspect", path]) == 0
    assert "ReLU in front of the layer" in capsys.readouterr().out
    assert main(["ask", path, "--on", "1", "3", "--features", "auto"]) == 0


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, weights, capsys):
    W, b = weights
    clipped = classifier(tmp_path / "m.tflite", W, b, fused=RELU)
    assert main(["inspect", clipped]) == 0 or "no fully connected layer" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no fully connected layer before its output"):
        load_head(clipped)
    (tmp_path / "n.tflite").write_bytes(b"not a model at all")
    with pytest.raises(ValueError, match="is no TFLite file"):
        load_head(tmp_path / "n.tflite")


def test_no_damage_ends_in_anything_but_a_sentence(tmp_path, weights):
    """Every byte of the tables turned over in turn, and the file cut off at many places: a layer,
    or a sentence that names the file.
    """
    whole = (tmp_path / "m.tflite").with_suffix(".tflite")
    classifier(whole, *weights)
    data = whole.read_bytes()
    target = tmp_path / "damaged.tflite"
    damaged = [data[:n] for n in range(9, len(data), 17)]
    damaged += [
        data[:n] + bytes([data[n] ^ flip]) + data[n + 1 :]
        for n in range(0, len(data), 3)
        for flip in (0x01, 0x80, 0xFF)
    ]
    refused = 0
    for text in damaged:
        target.write_bytes(text)
        with contextlib.suppress(ValueError):
            load_head(target)
            continue
        refused += 1
    assert refused > len(damaged) / 4
