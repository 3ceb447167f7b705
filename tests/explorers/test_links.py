"""Links that hold a figure's state come back; changed ones alter nothing."""

import json
from urllib.parse import quote

import pytest

START = {"X": [[1.0, 2.0], [0.5, 0.0]], "coupling": 1.0, "b": None, "hidden": False}
LEFT = {"X": [[0, 0], [1, 1], [2, -1]], "coupling": -0.5, "b": [0, 1, 2]}
SENSELESS = [{"hidden": True}, {"coupling": "1"}, {"coupling": None}, {"coupling": 1e99}]
SENSELESS += [{"X": X} for X in ("<script>", [[1, "2"]], [[[1]]], [[1, 2]] * 100)]


def _link(state) -> str:
    return "#" + quote(json.dumps(state))


@pytest.mark.parametrize(
    ("hash", "state"),
    [
        (_link(LEFT), LEFT),
        (_link({"coupling": 2, "X": "?"}), {"coupling": 2}),
        *((hash, {}) for hash in ("", "#dark", "#%", "#null", "#[1, 2]", *map(_link, SENSELESS))),
    ],
)
def test_a_link_changes_what_makes_sense_and_nothing_else(javascript, hash, state):
    body = "return m.stateInAddress(...argument);"
    assert javascript("page", body, [hash, START, ["X", "coupling", "b"]]) == state


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
