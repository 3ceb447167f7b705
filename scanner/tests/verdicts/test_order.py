"""Orders of logits against enumeration, and the independent checker."""

import itertools
import sys
from collections import Counter

import numpy as np
import pytest
from enumeration import enumerate_verdicts
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_layers import FEATURE_SETS, tiny_layer

from softgeom.asking.ask import Answers, ask
from softgeom.certifying.order import Order
from softgeom.layer import Ball, Box, SoftmaxLayer


def oracle(W, b, order, region) -> str:
    """Enumeration: a class of zeros against the rivals ``w_b - w_a`` of all comparisons."""
    rows, shifts = [np.zeros(W.shape[1], np.int64)], [0]
    for upper, lower in order.steps(len(W)):
        for a, c in itertools.product(upper, lower):
            rows.append(W[c] - W[a])
            shifts.append(b[c] - b[a])
    truth = enumerate_verdicts(np.array(rows), np.array(shifts), region)[0]
    return "possible" if truth.verdict == "argmaxable" else "impossible"


def test_every_class_of_an_order_is_told_and_long_blocks_by_their_first():
    blocks = [[2], [9, 0, 1, 4], [5, 6, 7]]
    assert Order(blocks).numbered() == "2 > 0-1 4 9 > 5-7"
    assert Order(blocks[:1], rest=True).numbered() == "2 > others"
    layer = SoftmaxLayer(np.eye(12), tokens=["a, b", "a", "b", "c > d", *"efghijkl"])
    alike = [Order([[0], [3]]), Order([[0, 3]]), Order([range(8)]), Order([[*range(7), 8]])]
    table = ask(layer, alike).table
    assert table.order[2] == table.order[3] == "a, b, a, b, c > d, 4 more"
    assert table.classes.tolist() == ["0 > 3", "0 3", "0-7", "0-6 8"]
    assert Order([range(7), [9]], rest=True).describe() == "0, 1, 2, 3, 3 more > 9 > others"
    assert Order([range(4)]).describe() == "0, 1, 2, 3"
    assert len({Order(blocks), Order(blocks), Order(blocks, rest=True)}) == 2
    with pytest.raises(AttributeError):
        alike[0].rest = True


def some_order(rng: np.random.Generator, classes: int) -> Order:
    most = min(classes - 1, int(rng.integers(1, 4)))
    cuts = np.sort(rng.choice(np.arange(1, classes), most, replace=False))
    blocks = np.split(rng.permutation(classes), cuts)
    if rng.random() < 0.3:
        return Order(blocks[:-1], rest=True)
    return Order(blocks if rng.random() < 0.5 else blocks[: max(2, len(blocks) - 1)])


@pytest.mark.parametrize("feature_set", FEATURE_SETS)
def test_no_verdict_differs_from_enumeration(feature_set):
    """Of orders of tiny layers, in their own units and far from them."""
    rng, counts = np.random.default_rng(0), Counter[str]()
    for _ in range(20):
        classes, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        tiny = tiny_layer(rng, feature_set, "integers", classes=classes, dimension=d)
        orders = [some_order(rng, classes) for _ in range(6)]
        found = ask(tiny.layer, orders, features=tiny.features)
        assert found.verify()
        for order, answer in zip(orders, found.answers, strict=True):
            assert answer.verdict == oracle(tiny.rows, tiny.bias, order, tiny.region)
            counts[answer.verdict] += 1
    assert min(counts["possible"], counts["impossible"]) > 15


def test_equal_rows_forbid_an_order_in_many_dimensions():
    """Beyond the dimensions of exact arithmetic, rows that are equal are still seen."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(50, 40)).astype(np.float32)
    W[7] = W[3]
    orders = [Order([[3], [7]], rest=True), Order([[3, 7]], rest=True)]
    found = ask(SoftmaxLayer(W), orders, features=Ball(1.0))
    assert [answer.verdict for answer in found.answers] == ["impossible", "possible"]
    assert found.verify()


ENTRY = st.sampled_from([-1.0, 0.0, 1e-300, 1.0, 2.0**30])


@settings(max_examples=40)
@given(st.lists(st.tuples(ENTRY, ENTRY), min_size=2, max_size=5), st.data())
def test_degenerate_layers_get_a_proven_answer_or_none(rows, data):
    layer = SoftmaxLayer(rows)
    order = Order([[i] for i in data.draw(st.permutations(range(len(rows))))])
    features = data.draw(st.sampled_from([Box(1.0), Ball(2.0)]))
    assert ask(layer, [order, Order([order.blocks[0]], rest=True)], features=features).verify()


def test_an_order_demands_comparisons_of_the_layer_and_its_margin_is_the_smallest():
    """A class number below 0 is none, and not one from the end."""
    order = Order([[0], [1, 2]])
    assert order.demands(np.array([0, 0]), np.array([1, 2]), 3)
    for above, below in ((0, -1), (0, 3), (-3, 1), (3, 1), (0, 0), (1, 2)):
        assert not order.demands(np.array([0, above]), np.array([1, below]), 3)
    above, below = np.array([0, 0]), np.array([1, 2])
    assert not order.demands(above * 1.0, below, 3)
    assert not order.demands(above, below * 1.0, 3)
    assert not order.demands(above[None], below[None], 3)
    assert not order.demands(above[:1], below, 3)
    assert not order.demands(above[:0], below[:0], 3)
    rng = np.random.default_rng(5)
    for _ in range(30):
        order, y = some_order(rng, 6), rng.integers(-9, 10, 6)
        rest = [sorted({*range(6)} - {*order.named})] * order.rest
        steps = itertools.pairwise([*order.blocks, *rest])
        pairs = [pair for upper, lower in steps for pair in itertools.product(upper, lower)]
        assert order.margin(y) == min(y[a] - y[b] for a, b in pairs)
        assert order.comparisons(6) == len(pairs)
    assert Order([[0, 1]]).margin(y) == np.inf


def test_bad_orders_are_refused_in_a_sentence():
    layer = SoftmaxLayer([[0.0], [1.0], [2.0]])
    for blocks, message in (
        ([], "at least one class"),
        ([[1], []], "at least one class"),
        ([[0], [1], [1]], "1 is named twice"),
        ([["a"]], "class numbers"),
        ([[True]], "class numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            Order(blocks)
    for wrong in (3, -1):
        said = f"names class {wrong}; the layer has classes 0 to 2"
        with pytest.raises(ValueError, match=said):
            ask(layer, [Order([[wrong], [0]])])
        with pytest.raises(ValueError, match=said):
            Order([[0], [wrong]]).check(3)
    with pytest.raises(ValueError, match="Each question is an Order"):
        ask(layer, [[0, 1]])  # type: ignore[list-item]
    assert len(ask(layer, [])) == 0
    # nothing is compared
    assert ask(layer, [Order([[0, 1, 2]], rest=True)])[0].verdict == "possible"


@pytest.mark.parametrize("where", ["seek", "decide"])
def test_a_fault_in_one_question_leaves_it_open_and_loses_no_other(where, monkeypatch):
    """It strikes wherever the second of three questions is looked at, alone or with others."""
    module = sys.modules[Answers.__module__]
    layer = SoftmaxLayer([[1.0], [0.0], [-1.0]])  # class 1 is never above both
    orders = [Order([[n], [i for i in range(3) if i != n]]) for n in range(3)]
    real, struck = getattr(module, where), orders[1]

    def faulty(problem, *others, **options):
        asked = others[0] if where == "seek" else others
        if any(order is struck for order in asked):
            raise ZeroDivisionError("induced")
        return real(problem, *others, **options)

    monkeypatch.setattr(module, where, faulty)
    found = ask(layer, orders, features=Box(1.0))
    assert [answer.verdict for answer in found.answers] == ["possible", "undecided", "possible"]
    assert "ZeroDivisionError: induced" in found[1].evidence.reason
    assert found.verify()
    monkeypatch.setattr(module, where, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ask(layer, orders[1:2], features=Box(1.0))
