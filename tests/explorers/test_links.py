"""Links that hold a figure's state come back; tampered ones change nothing."""

import json
from urllib.parse import quote

import pytest

START = {"X": [[1.0, 2.0], [0.5, 0.0]], "coupling": 1.0, "b": None, "veiled": False}
NAMES = ["X", "coupling", "b"]


@pytest.fixture(scope="module")
def read(javascript):
    body = "return m.stateInAddress(...argument);"
    return lambda text: javascript("page", body, [text, START, NAMES])


def _link(state) -> str:
    return "#" + quote(json.dumps(state))


def test_what_was_left_comes_back_beside_what_makes_no_sense(read):
    left = {"X": [[0, 0], [1, 1], [2, -1]], "coupling": -0.5, "b": [0, 1, 2]}
    assert read(_link(left)) == left
    assert read(_link({"coupling": 2, "X": "?"})) == {"coupling": 2}


STATES = [{"veiled": True}, {"coupling": "1"}, {"coupling": None}, {"coupling": 1e99}]
STATES += [{"X": X} for X in ("<script>", [[1, "2"]], [[[1]]], [[1, 2]] * 100)]


@pytest.mark.parametrize("hash", ["", "#dark", "#%", "#null", "#[1, 2]", *map(_link, STATES)])
def test_a_link_that_makes_no_sense_changes_nothing(read, hash):
    assert read(hash) == {}


ECHO = """
const kernel = [];
const model = {
  state: {},
  get: (name) => model.state[name],
  set: (name, value) => (model.state[name] = value),
  save_changes() {
    const sent = { ...model.state };
    const nth = kernel.push(sent);
    setTimeout(() => nth === kernel.length && Object.assign(model.state, sent), 1);
  },
};
const put = m.writer(model);
put({ x: 1 });
put({ x: 2 });
await new Promise((go) => setTimeout(go, 100));
return [model.state.x, kernel.at(-1).x];
"""


def test_an_echo_of_the_kernel_takes_no_newer_state_back(javascript):
    """As ipywidgets does, the model takes an echo for the truth unless it has sent more since."""
    assert javascript("stage", ECHO) == [2, 2]
