"""Plain data come out as pickle gives them; all else is refused unexecuted."""

import collections
import datetime
import pickle

import numpy as np
import pytest

from softgeom.checkpoints.plain_pickle import read_plain_pickle


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_come_out_as_pickle_gives_them(tmp_path, protocol):
    rng = np.random.default_rng(0)
    content = {
        "W": rng.standard_normal((5, 3)).astype(np.float32),
        "columns": np.asfortranarray(rng.standard_normal((4, 6))),
        "codes": np.arange(4, dtype=">i2"),
        "number": np.float64(2.5),
        "nested": [("a", 1, 2.5, None, True), {"b": b"bytes"}],
        "ordered": collections.OrderedDict(x=1),
    }
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    found = read_plain_pickle(path)
    for name in ("W", "columns", "codes"):
        np.testing.assert_array_equal(found[name], content[name])
        assert found[name].dtype == content[name].dtype
    assert found["number"] == 2.5
    assert found["nested"] == content["nested"]
    assert found["ordered"] == {"x": 1}


@pytest.mark.parametrize(
    "content",
    [
        {"W": np.array([[object()]], dtype=object)},
        {"W": np.array(["text"])},
        {"W": np.zeros(2, dtype=[("a", "f4")])},
        {"W": np.array(["2020-01-01"], dtype="M8[D]")},
        {"when": datetime.date(2020, 1, 1)},
    ],
)
def test_what_is_no_plain_data_is_refused(tmp_path, content):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"m\.pkl (asks for|is not a whole pickle of plain data)"):
        read_plain_pickle(tmp_path / "m.pkl")


def test_declared_lengths_and_memory_slots_allocate_nothing(tmp_path):
    path = tmp_path / "m.pkl"
    two = pickle.dumps({"W": np.zeros((3, 2))}, protocol=2)
    for programme in (
        b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"x.",
        b"\x80\x02Nr\xff\xff\xff\x7f.",
        two.replace(b"K\x03K\x02", b"K\x04K\x02"),  # rows that are not there
    ):
        path.write_bytes(programme)
        with pytest.raises(ValueError, match="not a whole pickle"):
            read_plain_pickle(path)
