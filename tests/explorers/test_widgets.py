"""The widgets' state in Python: what they accept, what they refuse and how they say so."""

import json
import re

import numpy as np
import pytest
import traitlets

from papers.bottleneck import count_regions
from papers.explorers import (
    NAMES,
    AttentionExplorer,
    FoldExplorer,
    HardmaxExplorer,
    SoftmaxExplorer,
    examples,
    page,
    scripts,
)
from papers.hardmax.dynamics import attention
from softgeom.web.document import document

TRIANGLE = [[0, 2], [-2, -1], [2, -1]]


def test_verdicts_follow_the_weights():
    explorer = SoftmaxExplorer()
    assert explorer.verdicts["verdict"].tolist() == ["argmaxable"] * 3 + ["unargmaxable"]
    assert explorer.rankings == count_regions(4, 2, bias=False)
    explorer.W = [*TRIANGLE, [0, -2]]
    assert set(explorer.verdicts["verdict"]) == {"argmaxable"}
    explorer.W = [*TRIANGLE, [0, 0]]
    for bias, verdict in ((-10, "unargmaxable"), (1, "argmaxable")):
        explorer.b = [0, 0, 0, bias]
        assert explorer.verdicts["verdict"][3] == verdict


def test_the_browser_s_messages_pass_the_same_gate_and_classes_change_together():
    """`set_state` is what a message of the browser ends in."""
    explorer = SoftmaxExplorer(TRIANGLE)
    explorer.set_state({"W": [*TRIANGLE, [0, 0.5]], "b": [0, 0, 0, 1]})
    assert explorer.W.shape == (4, 2)
    np.testing.assert_array_equal(explorer.b, [0, 0, 0, 1])
    with pytest.raises(ValueError, match="NaN"):
        explorer.set_state({"W": [[None, 1], [0, 1], [1, 1], [2, 2]]})
    assert explorer.W.shape == (4, 2)
    explorer = SoftmaxExplorer(TRIANGLE, b=[0, 1, 2], names=["a", "b", "c"])
    with pytest.raises(ValueError, match="one entry per class"):
        explorer.W = [[0, 1], [1, 0]]
    explorer.set_layer([[0, 1], [1, 0]], names=["yes", "no"])
    assert explorer.layer.tokens == ("yes", "no")
    assert explorer.b is None


def test_the_state_sent_to_the_browser_is_plain_json_and_read_only():
    for widget in (SoftmaxExplorer(b=[0, 0, 0, 1]), AttentionExplorer(), HardmaxExplorer()):
        names = [name for name in ("W", "b", "presets") if widget.has_trait(name)]
        json.dumps(widget.get_state(names), allow_nan=False)
    with pytest.raises(ValueError, match="read-only"):
        SoftmaxExplorer().W[0, 0] = 7


@pytest.mark.parametrize(
    ("widget", "name", "value", "told"),
    [
        (SoftmaxExplorer, "W", [[0, 1], [float("nan"), 1]], "W has a NaN or infinite entry"),
        (SoftmaxExplorer, "W", [[0, 1, 2], [3, 4, 5]], "two columns"),
        (SoftmaxExplorer, "W", "weights", "array of numbers"),
        (SoftmaxExplorer, "W", [[0, 1]] * 17, "at most 16"),
        (SoftmaxExplorer, "b", [1, 2], "one entry per class"),
        (SoftmaxExplorer, "names", ["a"], "4 classes"),
        (SoftmaxExplorer, "among", [0, 0, 0, 0], "at least one 1"),
        (SoftmaxExplorer, "first", 3, "first must be 1"),
        (AttentionExplorer, "X", [[1, 2]], "shows 2 to 12"),
        (AttentionExplorer, "X", [1, 2], r"\(n, 2\) matrix"),
        (FoldExplorer, "past", [], "1 to 8 numbers"),
        (FoldExplorer, "coupling", float("inf"), "coupling must lie between"),
        (HardmaxExplorer, "Z", [[1, 2]] * 17, "shows 1 to 16"),
        (HardmaxExplorer, "layer", 13, "layer must lie between"),
        (AttentionExplorer, "coupling", "large", "coupling"),
    ],
)
def test_bad_values_are_refused_in_one_sentence_and_the_state_kept(widget, name, value, told):
    explorer = widget()
    before = repr(explorer.get_state())
    with pytest.raises((ValueError, traitlets.TraitError), match=told) as caught:
        explorer.set_trait(name, value)
    assert "\n" not in str(caught.value)
    assert repr(explorer.get_state()) == before


def test_fewer_layers_show_a_layer_that_exists():
    explorer = HardmaxExplorer(layers=12, layer=9)
    explorer.layers = 4
    assert explorer.layer == 4
    assert explorer.states.shape[0] == 5


def test_presets_do_what_their_names_say():
    losers, told = {}, set()
    for preset in examples.PRESETS["softmax"]:
        explorer, name = SoftmaxExplorer(preset["W"], preset["b"]), preset["name"]
        formula = count_regions(len(preset["W"]), 2, bias=preset["b"] is not None)
        assert (explorer.rankings == formula) == ("special position" not in name), name
        for number in re.findall(r"(\d+) rankings", name):
            assert explorer.rankings == int(number)
            told.add(number)
        losers[name] = np.flatnonzero(explorer.verdicts["verdict"] != "argmaxable").tolist()
    assert told == {"6", "8", "12", "18"}
    assert losers["Figures 1 and 2: an unargmaxable class"] == [3]
    assert losers["A bias lets the inner class win"] == []
    assert losers["The upper hull decides"] == [7]
    assert losers["Twelve classes"] == [6, 7, 8, 9, 10, 11]
    assert losers["Decay: classes that training never shows"] == []


def test_decay_takes_the_regions_of_withheld_classes(javascript):
    (preset,) = (p for p in examples.PRESETS["softmax"] if "withheld" in p)
    W, withheld = np.array(preset["W"]), preset["withheld"]
    lost = []
    for amount in (0.0, 0.4, 0.625, 2.0):
        body = "return m.decayed(argument.W, argument.withheld, argument.amount);"
        found = np.array(javascript("softmax", body, preset | {"amount": amount}))
        mean, expected = W[withheld].mean(axis=0), W.copy()
        expected[withheld] = mean + np.exp(-amount) * (W[withheld] - mean)
        assert np.abs(found - expected).max() <= 1 / 128
        verdicts = SoftmaxExplorer(found).verdicts["verdict"]
        lost.append(np.flatnonzero(verdicts != "argmaxable").tolist())
    assert lost == [[], [6], [6, 7], [6, 7, 8]]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_one_file_that_asks_for_nothing(name):
    text = page(name)
    # a name space, not an address that is fetched
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "import {" not in text
    assert text.count("<script") == 1
    assert len(text) < 100_000


@pytest.mark.parametrize(
    ("needs", "more"),
    [({"scripts": False}, set()), ({"workers": True}, {"script-src", "worker-src"})],
)
def test_a_page_is_allowed_what_it_needs_and_nothing_else(needs, more):
    text = document("A < B", "p { margin: 0; }", "<p>text</p>", **needs)
    policy = re.search('Content-Security-Policy" content="([^"]*)"', text)[1]
    allowed = {"default-src", "style-src", "img-src"} | more
    assert {rule.split()[0] for rule in policy.split("; ")} == allowed
    assert "default-src 'none'" in policy
    assert "<title>A &lt; B</title>" in text


def test_a_page_can_start_elsewhere_cannot_be_broken_out_of_and_names_what_is_unknown():
    text = page("softmax", {"W": TRIANGLE, "names": ["</script><b>", "b", "c"]})
    assert "</script><b>" not in text
    assert "\\u003c/script>" in text
    for call, says in ((("maxout",), "there is no explorer"), (("softmax", {"V": 1}), "has no V")):
        with pytest.raises(ValueError, match=says):
            page(*call)


@pytest.mark.parametrize(
    "text",
    [*map(scripts.page_module, NAMES), *map(scripts.module, ("scan_worker", "scan_page"))],
    ids=[*NAMES, "scan_worker", "scan_page"],
)
def test_joined_modules_share_no_top_level_name(text):
    declared = [
        line.removeprefix("async ").split("(")[0].split()[1].rstrip("*")
        for line in text.splitlines()
        if line.startswith(("function", "async function", "class ", "const ", "let "))
    ]
    assert len(declared) > 5
    assert len(declared) == len(set(declared))


def shown(explorer, kind, name, **more):
    """An explorer as the preset of that name sets it."""
    (preset,) = (preset for preset in examples.PRESETS[kind] if preset["name"] == name)
    return explorer(**examples.settings(preset), **more)


def test_presets_of_folds_and_of_leaders_do_what_their_names_say():
    for name, least, most, count in (
        ("A fold: three tokens, one residual", -np.inf, 0, 3),
        ("Two tokens, about to fold", 0, 0.5, 1),
        ("Negative coupling: never folded", 1, np.inf, 1),
    ):
        explorer = shown(FoldExplorer, "fold", name)
        assert least < explorer.smallest_slope <= most
        assert len(explorer.preimages) == count
    for name, leaders in {
        "Three leaders": [1, 2, 3],
        "A square: four leaders": [1, 2, 3, 4],
        "A stretched A changes the leaders": [1, 3],
        "An emerging leader": None,
    }.items():
        explorer = shown(HardmaxExplorer, "hardmax", name, layers=24)
        to_itself = (attention(explorer.Z, explorer.A) == np.eye(len(explorer.Z))).all(1)
        at_start, at_end = ((np.flatnonzero(x) + 1).tolist() for x in (to_itself, explorer.leaders))
        assert (at_end == at_start == leaders) == (leaders is not None), name


def test_candidates_and_pairs_have_verdicts_of_their_own():
    explorer = SoftmaxExplorer(among=[1, 1, 0, 1])
    assert explorer.candidates == [0, 1, 3]
    assert explorer.verdicts["class"].tolist() == [0, 1, 3]
    assert set(explorer.verdicts["verdict"]) == {"argmaxable"}
    explorer.among = None
    assert "unargmaxable" in set(explorer.verdicts["verdict"])
    explorer.among = [1, 1, 1, 0]
    explorer.set_layer(TRIANGLE)
    assert explorer.among is None
    (ring,) = (p for p in examples.PRESETS["softmax"] if p["name"].startswith("Retrieval"))
    explorer = SoftmaxExplorer(ring["W"], first=ring["first"])
    assert (explorer.pairs["verdict"] == "possible").sum() == len(ring["W"])
