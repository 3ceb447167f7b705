"""Damaged files of every kind end in a layer or in a sentence."""

import pickle
import struct
import tracemalloc

import damaged
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgeom.checkpoints import load_head

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
KINDS = damaged.kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_file_is_read(kind, tmp_path):
    name, content = KINDS[kind]
    assert damaged.answer(tmp_path, name, content()) == ""


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_ends_in_a_layer_or_a_sentence(kind, tmp_path, data):
    name, content = KINDS[kind]
    broken = data.draw(damaged.damaged(content()))
    assert damaged.answer(tmp_path, name, broken) == ""


@pytest.mark.parametrize(
    "kind",
    [
        "onnx", "paddle", "traineddata", "gguf", "gguf quantised", "tflite", "safetensors",
        "pickle",
    ],
)  # fmt: skip
def test_every_cut_and_every_inflated_number_ends_in_a_sentence(kind, tmp_path):
    """At each place of the header eight bytes say the largest numbers, so that each count, size and
    type does; nothing is allocated for them.
    """
    name, content = KINDS[kind]
    whole = content()
    broken = [whole[: len(whole) * n // 16] for n in range(16)]
    for at in range(0, min(len(whole), 400), 4):
        for large in (b"\xff" * 8, b"\xff\xff\xff\x7f" * 2):
            broken.append(whole[:at] + large + whole[at + 8 :])
    tracemalloc.start()
    try:
        for variant in broken:
            assert damaged.answer(tmp_path, name, variant) == "", variant
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "kept", "said"),
    [
        ("npz", -20, "is not a whole .npz file"),
        ("onnx", -20, "is not a whole ONNX file"),
        ("torch", 300, "is not a whole PyTorch file|holds more than tensors"),
        ("safetensors", -10, r"truncated: tensor 'model\.norm\.weight'.*\(10 bytes missing\)"),
        ("safetensors", 20, "truncated inside its header"),
    ],
)
def test_a_truncated_file_is_named(tmp_path, kind, kept, said):
    name, content = KINDS[kind]
    whole = content()
    (tmp_path / name).write_bytes(whole[:kept])
    with pytest.raises(ValueError, match=said) as caught:
        load_head(tmp_path / name)
    assert name in str(caught.value)


class _Trap:
    """An object whose unpickling would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("a.npz", lambda p, x: np.savez(p, W=np.array([x], dtype=object)), "holds Python objects"),
        (
            "a.pkl",
            lambda p, x: p.write_bytes(pickle.dumps({"W": np.ones((3, 2)), "x": x})),
            r"asks for the global (io|_io|builtins)\.open.*nothing of it was executed",
        ),
        ("a.pt", lambda p, x: torch.save({"lm_head.weight": x}, p), "nothing of it was executed"),
    ],
)
def test_code_in_a_file_is_not_executed(tmp_path, name, write, said):
    marker = tmp_path / "executed"
    write(tmp_path / name, _Trap(str(marker)))
    with pytest.raises(ValueError, match=said):
        load_head(tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
def test_bfloat16_is_exact(tmp_path, suffix):
    from safetensors.torch import save_file

    W = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    (save_file if suffix == "safetensors" else torch.save)({"W": W}, tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(load_head(tmp_path / f"a.{suffix}").layer.W, W.float())


def test_a_fault_is_seen(tmp_path, monkeypatch):
    """The judge itself: a library's own error, and a sentence with control characters."""
    name, content = KINDS["npz"]
    assert "cannot read" not in damaged.answer(tmp_path, name, b"text")
    monkeypatch.setattr(damaged, "load_head", lambda _: float("x"))
    assert damaged.answer(tmp_path, name, content()).startswith("ValueError: could not convert")


def test_arrays_that_claim_too_much_and_texts_that_are_not_unicode(tmp_path):
    """In GGUF an array of 2^60 texts; in a pickle lists that double forty times; in the name of a
    safetensors tensor half of a surrogate pair.
    """
    gguf, key = KINDS["gguf"][1](), b"tokenizer.ggml.tokens"
    at = gguf.index(key) + len(key) + 8  # behind the types of the entry and of its items
    claimed = gguf[:at] + (2**60).to_bytes(8, "little") + gguf[at + 8 :]
    doubled = b"\x80\x04]" + b"q\x00" + b"".join(b"]q%c(h%ch%ce" % (n + 1, n, n) for n in range(40))
    header = rb'{"\ud800": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}'
    for name, content, said in (
        ("a.gguf", claimed, "ends inside its header"),
        ("a.gguf", gguf.replace(b"gpt2", b"gp\xff2"), r"tokenizer\.ggml\.model is damaged"),
        ("a.pkl", doubled + b".", "holds no dictionary of named arrays"),
        ("a.safetensors", struct.pack("<Q", len(header)) + header + bytes(16), "cannot be read"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=said):
            load_head(tmp_path / name)
