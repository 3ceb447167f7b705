"""Each rounding term of a ceiling or a floor, alone.

A bound is a function of a few sums, so a test hands it sums of its own: integers and powers of two,
which float64 adds without error, and one size so large that its term is nearly all that the bound
pays. What is paid has to be what the standard model asks for (Higham 2002, Section 3.1), to six
digits. Then sums and libraries that are as wrong as they may be: the bounds have to hold there.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.ceiling import bound
from softgeom.ceiling.bound import (
    LIBRARY,
    SMALL_ENOUGH,
    Certifier,
    Target,
    _Look,
    least_eigenvalue,
    odds_to_ceiling,
)
from softgeom.layer import Box, SoftmaxLayer, Unbounded
from softgeom.rounding import underflow

C, D = 5, 2
HUGE = 2.0**30
LOG2 = math.log(2)


def gamma(n: int) -> float:
    """``n u / (1 - n u)``."""
    return n * 2.0**-53 / (1 - n * 2.0**-53)


N = gamma(2 * C + 24) + 4 * LIBRARY  # of sums over classes, and of what exp and log do to them
ONE = Target(np.array([0]), np.ones(1))
PAIR = Target(np.array([1, 2]), np.array([3.0, 3.0]))  # in units of their sum
PAIR_ERROR = (gamma(3 * 2 + 8) + LIBRARY) * (LOG2 + 2)
MANY = N + gamma(2 * 2 + 8)


class Recorder:
    """A feature set that says what it is told to say, and keeps what it is asked."""

    def __init__(self, reach: float = 0.0, size: float = 0.0, moved: float = 0.0) -> None:
        self.reach, self.size, self.moved = reach, size, moved
        self.asked: tuple[Any, Any] = (None, None)

    def check(self, dimension: int) -> None: ...

    def support_bound(self, v, error):
        self.asked = v, error
        return self.reach, self.size

    def features_at(self, Z):
        return Z, np.full(len(Z), self.moved)

    def contains(self, Z):
        return np.ones(len(Z), bool)


def certifier(features=None, W=0.0, b=0.0) -> Certifier:
    layer = SoftmaxLayer(np.broadcast_to(W, (C, D)).copy(), np.broadcast_to(b, C).copy())
    return Certifier(layer, features or Recorder())  # type: ignore[arg-type]


def look(**changes) -> _Look:
    """Sums that say nothing: one rival of weight 1."""
    sums: dict[str, Any] = dict.fromkeys(("top", "entropy", "bias", "size", "error"), 0.0)
    rest = {"y": np.zeros(C), "u": np.zeros(C), "mean": np.zeros(D), "total": 1.0, "inside": True}
    return _Look(**(sums | rest | changes))


def nearly(paid: float, room: float = 0.0):
    return pytest.approx(paid, rel=1e-6, abs=room)


def own(share: float) -> np.ndarray:
    return np.array([share, 0, 0, 0, 0])


# ---- Each sum's share of what a ceiling, a floor and a point pay


@pytest.mark.parametrize(
    ("sums", "b", "terms"),
    [
        ({"size": HUGE}, 0, HUGE),
        ({"size": HUGE, "total": 4.0}, 0, HUGE / 4 + math.log(4) + 1),
        ({}, HUGE, 2 * HUGE + 1),
        # of the whole, class t has nearly everything
        ({"u": own(1.0), "total": 1 + 1 / HUGE}, 0, 701 * HUGE + math.log(HUGE)),
        ({"u": own(1.0), "total": 1 + 1 / HUGE, "bias": HUGE + 1}, HUGE, (702 + 2 * HUGE) * HUGE),
        # a sum of two weights, halved, whose logarithm is not nothing
        ({"total": 2.0**-20}, 0, 1 + 20 * LOG2),
        ({}, 0, 1),
    ],
)
def test_a_ceiling_pays_for_each_of_its_sums(sums, b, terms):
    whole = look(**{"bias": float(b)} | sums)
    rest = whole.total - whole.u[0]
    exact = (whole.entropy + whole.bias - whole.u[0] * b) / rest + math.log(rest) - b
    # of 300 units in the last place less than two are lost on the way
    room = 2.0**-52 * abs(math.log(rest))
    assert exact - certifier(b=b)._odds(whole, 0) == nearly(2 * N * terms, room)


@pytest.mark.parametrize(
    ("sums", "b", "terms"),
    [
        ({"size": HUGE}, 0.0, HUGE),
        ({"size": HUGE, "total": 4.0}, 0.0, HUGE / 4 + math.log(4)),
        ({"bias": HUGE}, HUGE, 2 * HUGE),
        ({"bias": 4 * HUGE, "total": 4.0}, HUGE, 2 * HUGE + math.log(4)),
        ({"total": 1 / HUGE}, 0.0, math.log(HUGE)),
        ({}, 0.0, 0.0),
    ],
)
def test_a_floor_pays_for_each_of_its_sums(sums, b, terms):
    what = look(**sums)
    exact = (what.entropy + what.bias) / what.total + math.log(what.total) - b - PAIR.entropy[0]
    paid = 2 * MANY * (terms + LOG2 + 1) + PAIR_ERROR
    room = 2.0**-52 * (abs(exact) + abs(b) + LOG2 + abs(math.log(what.total)))
    assert exact - certifier(b=b)._floor(what, PAIR) == nearly(paid, room)


@pytest.mark.parametrize(
    ("sums", "size"),
    [
        ({"top": HUGE, "y": np.full(C, HUGE)}, 2 * HUGE),
        ({"top": -HUGE, "y": np.full(C, -HUGE)}, 2 * HUGE),
        # of two logits that cancel each has its size
        ({"y": np.array([0, HUGE, -HUGE, 0, 0])}, HUGE),
        ({"total": 2.0**900}, 900 * LOG2),
        ({}, 0.0),
    ],
)
def test_what_a_point_attains_is_paid_for(sums, size):
    what = look(**sums)
    level = what.top + math.log(what.total)
    alone = abs(what.top) + abs(what.y[0]) + math.log(what.total)
    for target, own, H, paid in (
        (PAIR, (what.y[1] + what.y[2]) / 2, LOG2, (size + LOG2 + 1, PAIR_ERROR)),
        (Target(np.array([0]), np.array([7.0])), what.y[0], 0.0, (alone + 1, 0.0)),
    ):
        n = gamma(C + 2 * len(target.classes) + 16) + 4 * LIBRARY
        exact = level - own - H
        room = 2.0**-52 * (abs(exact) + 1)
        attained = certifier()._attained(what, target)
        assert attained - exact == nearly(n * paid[0] + paid[1], room)
    assert certifier()._attained(look(error=HUGE), ONE) == nearly(2 * HUGE)  # of two logits
    assert certifier()._attained(look(inside=False), ONE) == math.inf


@pytest.mark.parametrize(
    ("reach", "size", "entropy", "paid"),
    [
        (0.0, HUGE * HUGE, 0.0, gamma(D + 8) * HUGE * HUGE),
        (HUGE, 0.0, HUGE, gamma(8) * HUGE + 2 * N),
        (-HUGE, 0.0, -HUGE, gamma(8) * HUGE + 2 * N),
    ],
)
def test_bounds_pay_for_the_reach_of_the_residual(reach, size, entropy, paid):
    asked, what = certifier(Recorder(reach, size)), look(entropy=entropy)
    assert -asked._odds(what, 0) == nearly(paid)
    more = 2 * gamma(2 * 1 + 8) + (gamma(11) + LIBRARY) * 2 if size == 0 else 0.0
    assert -asked._floor(what, ONE) == nearly(paid + more)


def test_a_large_entropy_is_paid_for_and_its_error_once(monkeypatch):
    for H, error in ((HUGE, 0.0), (0.0, HUGE)):
        monkeypatch.setattr(Target, "entropy", property(lambda _, pair=(H, error): pair))
        assert -certifier()._floor(look(entropy=H), PAIR) == nearly(2 * MANY * (H + 1) + error)
        paid = (gamma(C + 4 + 16) + 4 * LIBRARY) * (2 * H + 1) + error
        assert certifier()._attained(look(top=H), PAIR) == nearly(paid)


@pytest.mark.parametrize("share", [0.0, 15 / 16])
@pytest.mark.parametrize("W", [3.0, 0.0])
def test_the_residual_of_a_class_is_widened_by_its_rounding(W, share):
    """By four sums' worth of the largest entries, times the share that class t has of the whole."""
    features, mean = Recorder(), np.array([0.5, 2.0])
    certifier(features, W)._odds(look(u=own(share), mean=mean), 0)
    r, error = features.asked
    whole = 1 / (1 - share)
    assert r.tolist() == ((W - mean) * whole).tolist()
    assert error == nearly(4 * gamma(2 * C + 24) * whole * W + whole * underflow(C))


@pytest.mark.parametrize("size", [1, 0])
def test_the_residual_of_a_floor_is_widened_by_its_rounding(size):
    W = size * np.array([[1.0, 1], [2, 4], [4, 8], [0, 0], [0, 0]])
    features = Recorder()
    certifier(features, W)._floor(look(mean=np.array([1.0, 0.5]), total=2.0), PAIR)
    v, error = features.asked
    assert v.tolist() == ((W[1] + W[2]) / 2 - [0.5, 0.25]).tolist()
    widened = (gamma(2 * C + 24) + gamma(2 * 2 + 8)) * 2 * W.max(axis=0) + underflow(C)
    assert error == nearly(widened)


def test_no_weight_proves_nothing():
    for total in (0.0, 1.0, math.nan):
        assert certifier()._odds(look(u=own(1.0), total=total), 0) == -math.inf


# ---- A of weights with exactly the mean row w_t


def exact_mean(spread: float, W=0.0, b=0.0, **sums) -> tuple[float, float]:
    """The bound, and r's norm that it asked the spread for."""
    one, asked = certifier(Recorder(math.inf), W, b), []
    one._least_spread = lambda _, r: asked.append(r) or spread  # type: ignore[method-assign]
    return one._odds(look(**sums), 0), asked[0] if asked else math.nan


@pytest.mark.parametrize("spread", [math.inf, 32.0, 16.0])
@pytest.mark.parametrize(
    ("sums", "b"),
    [
        ({"size": HUGE}, 0.0),
        ({"size": HUGE, "entropy": HUGE * HUGE}, 0.0),
        ({"entropy": 8.5}, 0.0),
        ({"entropy": 0.5, "total": 4.0}, 0.0),
        ({"entropy": -8.5}, 0.0),
        ({"entropy": 4 * HUGE, "bias": 0.0, "total": 4.0}, HUGE),
        ({"u": own(0.5), "size": 1.0, "total": 2.5}, 0.0),
        ({"u": own(1.0), "total": 1 + 1 / HUGE}, 0.0),
        ({}, 0.0),
    ],
)
def test_weights_moved_by_a_share_pay_for_it(spread, sums, b):
    """The weights are off by eps at most: so is their sum, and each ``u T`` by eps ``|u T| + 2u``
    (its logarithm moves too). What is computed from eps is rounded up by 1e-9 of it.
    """
    value, r_norm = exact_mean(spread, b=b, mean=np.array([1.0, 0.0]), **sums)
    assert r_norm == nearly(1.0)
    what, eps = look(**sums), 2 * r_norm / spread * (1 + 1e-9)
    share_of_t = float(what.u[0])
    total = what.total - share_of_t
    lost = share_of_t * math.log(share_of_t) if share_of_t else 0.0
    sum_T = what.entropy + lost + what.bias - what.total * b
    size = what.size + 700 * share_of_t + 2 * b * what.total
    low = sum_T - 2 * N * (size + what.total) - eps * (1 + 1e-9) * (size + 2 * what.total)
    share = low / (total * (1 + eps)) if low > 0 else low / (total * (1 - eps))
    exact = share + math.log(total) + math.log1p(-eps)
    last = abs(share) + abs(math.log(total)) + 1
    paid = (gamma(2 * C + 24) * what.total / total + 4 * LIBRARY) * last
    assert value == pytest.approx(exact - paid, rel=1e-12)
    if math.isinf(spread):
        ideal = sum_T / total + math.log(total)
        room = 4 * 2.0**-52 * (abs(ideal) + abs(math.log(total)))
        assert ideal - value == nearly(paid + 2 * N * (size + what.total) / total, room)


@pytest.mark.parametrize(
    ("spread", "proven"),
    [
        (8.0 * (1 + 1e-7), True),
        # a move by a quarter proves nothing, and the quotient is rounded up
        *((spread, False) for spread in (8.0, 8.0 * (1 + 5e-10), 0.0, -1.0, -math.inf, math.nan)),
    ],
)
def test_weights_that_would_move_by_a_quarter_prove_nothing(spread, proven):
    assert (exact_mean(spread, mean=np.array([1.0, 0.0]))[0] > -math.inf) is proven


def test_the_mean_row_is_off_by_its_rounding_at_most():
    for total in (1.0, 4.0):
        # in units of the largest norm, sqrt(18), which is below 8
        _, r_norm = exact_mean(math.inf, W=3.0, mean=np.full(D, 3.0) * total, total=total)
        assert r_norm == nearly(gamma(2 * C + 24) * 2 * 3 * math.sqrt(2) * total / 8)
    for mean in (np.zeros(D), np.full(D, underflow(C))):
        _, r_norm = exact_mean(math.inf, mean=mean)
        assert r_norm >= (underflow(C) + mean[0]) * math.sqrt(2)


@pytest.mark.parametrize(("power", "proven"), [(901, False), (900, True), (-900, True)])
def test_rows_near_the_ends_of_float64_have_no_exact_mean(power, proven):
    W = np.zeros((C, D))
    W[0, 0] = 2.0 ** (power - 1)  # 2^e has exponent e + 1
    assert (exact_mean(math.inf, W)[0] > -math.inf) is proven
    assert exact_mean(math.inf, W * 2.0 ** (2 if power > 0 else -2))[0] == -math.inf


# ---- The spread of the rows


def test_a_spread_pays_for_its_sums_and_its_centre(monkeypatch):
    """Rows (3, 0) and (-3, 0), in units of 4."""
    asked: list[Any] = []
    monkeypatch.setattr(bound, "least_eigenvalue", lambda *given: asked.append(given) or 0.0)
    rows = np.zeros((C, D))
    rows[:2, 0] = 3.0, -3.0
    for weight in (1.0, 0.25):
        u = np.array([weight, weight, 0, 0, 0])
        off = -certifier(W=rows)._spread(look(u=u, total=2 * weight))
        M, trace = asked[-1]
        assert M.tolist() == [[2 * weight * 9 / 16, 0.0], [0.0, 0.0]]
        assert trace >= Fraction(M[0, 0]) * (1 + Fraction(C + 7, 2**53))
        assert trace <= M[0, 0] * (1 + gamma(C + 10))
        centre = 2 * weight * (gamma(2 * C + 8) * 2 * 0.75) ** 2
        assert off == nearly(gamma(C + 8) * (trace + 4 * 2 * weight) + centre)
    # where columns are long, with roundings of unit size
    monkeypatch.setattr(bound, "gamma", lambda n: float(n))
    u = np.array([1.0, 1.0, 0, 0, 0])
    off = -certifier(W=3.0)._spread(look(u=u, total=2.0, mean=np.full(D, 6.0)))
    columns = 3 * math.sqrt(2) / 8
    assert off == nearly((C + 8) * 4 * 2 + 2 * ((2 * C + 8) * 2 * columns) ** 2)


@pytest.mark.parametrize("tile", [bound.TILE_BYTES, 1, 3 * 8])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_a_spread_is_below_the_exact_one(offset, tile, monkeypatch):
    """Of rows with one feature, the further from the origin the less of it is left."""
    monkeypatch.setattr(bound, "TILE_BYTES", tile)
    rng = np.random.default_rng(1)
    for _ in range(10):
        W, u = rng.normal(size=(C, 1)) + offset, 2.0 ** -rng.integers(0, 9, C)
        held = Certifier(SoftmaxLayer(W), Unbounded())
        proven = held._spread(look(u=u, total=u.sum(), mean=u @ W))
        w, v = ([Fraction(x) for x in side.tolist()] for side in (W[:, 0], u))
        mean = sum(p * q for p, q in zip(v, w, strict=True)) / sum(v)
        exact = sum(p * (q - mean) ** 2 for p, q in zip(v, w, strict=True)) / 4**held.power
        assert proven <= exact / 2
        assert offset or proven >= exact / 2 * (1 - Fraction(1, 10**6))


@settings(max_examples=60)
@given(st.lists(st.tuples(*[st.floats(1e-9, 1.0)] * 3), min_size=C, max_size=C))
def test_a_borrowed_spread_is_at_most_the_least_ratio(weights):
    earlier, now, (least, *_) = (np.array(side) for side in zip(*weights, strict=True))
    held = certifier()
    held._spreads = [(earlier, float(least))]
    held._spread = lambda _: math.nan  # type: ignore[method-assign]
    borrowed = held._least_spread(look(u=now), 0.0)
    pairs = zip(now.tolist(), earlier.tolist(), strict=True)
    exact = min(Fraction(a) / Fraction(b) for a, b in pairs) * Fraction(float(least))
    assert exact * (1 - Fraction(1, 10**12)) <= Fraction(borrowed) <= exact


def test_spreads_are_borrowed_from_few_and_only_where_they_do():
    held = certifier()
    u = np.array([1.0, 0.5, 0, 0, 0])
    held._spread = lambda given: float(given.u[0])  # type: ignore[method-assign]
    for n in range(20):
        held._least_spread(look(u=u * 4.0**-n), 1.0)
    assert [least for _, least in held._spreads] == [4.0**-n for n in range(12, 20)]
    # classes that weighed nothing ask for nothing, and of equal ones the latest lends
    held._spreads = [(u, 7.0), (u, 2.0), (u, 0.0), (u, -math.inf)]
    wider = look(u=np.array([1.0, 0.5, 0.1, 0, 0]))
    for r_norm, spread in ((0.8, 2.0), (1.2, 7.0), (4.0, 1.0)):
        assert held._least_spread(wider, r_norm * SMALL_ENOUGH) == pytest.approx(spread)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_a_least_eigenvalue_pays_for_two_factorisations(d):
    M = np.diag(np.arange(2.0, d + 2))
    assert 1.0 - least_eigenvalue(M, HUGE) == pytest.approx(4 * gamma(2 * d + 4) * HUGE, rel=1e-5)


@pytest.mark.parametrize(
    ("said", "corner", "proven"),
    [
        (1.5, 2.0, 0.75), (3.0, 2.0, -math.inf), (math.nan, 2.0, -math.inf), (0.0, 2.0, -math.inf),
        (0.5, math.nan, -math.inf), (0.5, math.inf, -math.inf),
    ],
)  # fmt: skip
def test_an_eigenvalue_is_believed_after_a_factorisation_only(said, corner, proven, monkeypatch):
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda _: np.array([said, 9.0]))
    assert least_eigenvalue(np.array([[2.0, 1.0], [1.0, corner]]), 4.0) == pytest.approx(proven)


# ---- Sums at a point


@pytest.mark.parametrize(
    ("size", "b", "moved", "error"),
    [
        (1, 0.0, 0.0, gamma(D + 6) * 25),
        (1, HUGE, 0.0, gamma(D + 6) * (25 + HUGE)),
        (1, 0.0, 2.0, gamma(D + 6) * 25 + 10),
        (0, 0.0, 2.0, underflow(D + 6)),
    ],
)
def test_a_logit_is_off_by_its_roundings(size, b, moved, error):
    """Norm 5 and a point of norm 5; biases; a point that was moved; products that vanish."""
    rows = np.zeros((C, D))
    rows[0] = 3.0 * size, 4.0 * size
    (one,) = certifier(Recorder(moved=moved), rows, b)._look(np.array([[4.0, 3.0]]))
    assert one.error == nearly(error)


def test_weights_below_the_least_exponent_are_left_out():
    (one,) = certifier(b=np.array([2.0, 1.0, 0.0, -698.0, -699.0]))._look(np.zeros((1, D)))
    assert one.u == pytest.approx(np.exp([0.0, -1, -2, -700, -math.inf]))
    assert one.u[3] > one.u[4] == 0


def test_a_point_where_one_logit_overflows_attains_nothing():
    rows = np.zeros((C, D))
    rows[0] = 1e200
    with np.errstate(all="ignore"):
        held = certifier(Box(1e200), rows)
        for z, inside in ((1e200, False), (1.0, True), (2e200, False)):
            assert bool(held._look(np.full((1, D), z))[0].inside) is inside
        floor, attained = held.floors(np.full((1, D), 1e200), [PAIR], np.zeros(1, int))
        assert (floor.tolist(), attained.tolist()) == ([0.0], [math.inf])


# ---- Libraries that are as wrong as they may be


@pytest.fixture(params=[-1, 1], ids=["low", "high"])
def library(request, monkeypatch):
    """An exp that is off by nearly LIBRARY."""
    with localcontext() as context:
        context.prec = 60
        factor = 1 + request.param * Decimal(LIBRARY)

        def exp(x: float) -> float:
            with localcontext(context):
                exact = Decimal(x).exp()
                off = float(exact * factor)
                within = abs(Decimal(off) - exact) <= exact * Decimal(LIBRARY)
                return off if within else math.nextafter(off, -request.param * math.inf)

        monkeypatch.setattr(bound, "math", SimpleNamespace(**vars(math) | {"exp": exp}))
        yield


@pytest.mark.usefixtures("library")
def test_a_ceiling_is_rounded_up():
    with localcontext() as context:
        context.prec = 60
        for A in (-699.0, -60.0, -40.0, *np.linspace(-36, 700, 200).tolist()):
            exact = 1 / (1 + Decimal(A).exp())
            assert exact <= Decimal(odds_to_ceiling(A)) <= exact * Decimal(1 + 4 * LIBRARY)
    assert {odds_to_ceiling(A) for A in (-math.inf, math.inf, math.nan, -701.0, -700.0)} == {1}
    assert odds_to_ceiling(1e9) == nearly(math.exp(-700))


@pytest.mark.usefixtures("library")
def test_what_a_class_reaches_is_rounded_down(monkeypatch):
    held, zero = certifier(Recorder()), np.zeros(1, int)
    monkeypatch.setattr(Certifier, "_odds", lambda *_: -math.inf)

    def reached(log_p: float) -> float:
        monkeypatch.setattr(Certifier, "_attained", lambda *_: -log_p)
        ceiling, least = held.ceilings(np.zeros((1, D)), zero, zero)
        assert ceiling[0] == 1
        return least[0]

    with localcontext() as context:
        context.prec = 60
        for log_p in np.linspace(-699.9, 0, 200).tolist():
            exact = Decimal(log_p).exp()
            assert exact * Decimal(1 - 4 * LIBRARY) <= Decimal(reached(log_p)) <= exact
    assert {reached(log_p) for log_p in (-700.0, -1e9, -math.inf, math.nan)} == {0}


@pytest.mark.parametrize("few", [1e-20, 2.0**-53, 5e-324])
def test_the_entropy_of_hardly_anything_is_covered(few):
    """Shares of 1 and 1e-20: the first one's logarithm is 0 in float64, and -1e-20 in truth."""
    with localcontext() as context:
        context.prec = 60
        H, error = Target(np.arange(2), np.array([1.0, few])).entropy
        w = [Decimal(1), Decimal(few)]
        exact = -sum(v / sum(w) * (v / sum(w)).ln() for v in w)
        assert abs(Decimal(H) - exact) <= Decimal(error)
        assert error == nearly((gamma(14) + LIBRARY) * (H + 2))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.floats(-37, 0), st.floats(-1, 1)), min_size=C, max_size=C),
    st.sampled_from([1.0, 1e4, 1e8]),
    st.sampled_from(["total", "entropy", "bias"]),
    st.lists(st.sampled_from([-1, 1]), min_size=2, max_size=2),
    st.booleans(),
)
def test_sums_that_are_as_wrong_as_they_may_be_prove_a_true_bound(
    drawn, scale, wrong, signs, dominant
):
    """One sum off by 1.9 N of its terms' sizes, of the 2 N that bounds pay, and logarithms by
    LIBRARY, either way.
    """
    u = np.exp([a for a, _ in drawn])
    u[0 if dominant else 1] = 1.0
    b = np.array([v for _, v in drawn]) * scale
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(float(v)) for v in u]
        logs = [v.ln() for v in exact]
        bias = [Decimal(float(v)) for v in b]
        size = sum(-v * log for v, log in zip(exact, logs, strict=True))
        gain = sum(v * c for v, c in zip(exact, bias, strict=True))
        gain_size = sum(v * abs(c) for v, c in zip(exact, bias, strict=True))
        whole, off = sum(exact), signs[0] * Decimal(1.9 * N)
        sums = {"total": whole, "entropy": size, "bias": gain}
        sums[wrong] += off * {"total": whole, "entropy": size, "bias": gain_size}[wrong]
        floats = {name: float(value) for name, value in sums.items()}
        what = look(u=u, size=float(size), y=np.log(u), **floats)
        with pytest.MonkeyPatch.context() as patch:
            off_log = 1 + signs[1] * (LIBRARY - 2.0**-51)
            changed = vars(math) | {"log": lambda x: math.log(x) * off_log}
            patch.setattr(bound, "math", SimpleNamespace(**changed))
            value, floor = certifier(b=b)._odds(what, 0), certifier(b=b)._floor(what, PAIR)
            attained = certifier()._attained(what, PAIR)
        terms = [v * (c - log) for v, log, c in zip(exact, logs, bias, strict=True)]
        rest = sum(exact[1:])
        truth = sum(terms[1:]) / rest + rest.ln() - bias[0]
        assert value == -math.inf or Decimal(value) <= truth
        mixed, log2 = sum(terms) / whole + whole.ln(), Decimal(2).ln()
        assert Decimal(floor) <= mixed - log2 - (bias[1] + bias[2]) / 2
        own = sum(Decimal(float(v)) for v in what.y[[1, 2]]) / 2
        assert wrong == "total" or Decimal(attained) >= whole.ln() - own - log2


# ---- Blocking classes


@pytest.mark.parametrize(
    ("rivals", "weights"),
    [
        ([-1, 1], [1, 1]), ([1, C], [1, 1]), ([0, 1], [1, 1]), ([], []), ([1, 2], [1]),
        ([[1, 2]], [[1, 1]]), ([1, 2], [1, 0]), ([1, 2], [1, -1]), ([1, 2], [1, math.nan]),
        ([1, 2], [1, math.inf]),
    ],
)  # fmt: skip
def test_blocking_classes_are_other_classes_of_the_layer_with_positive_weights(rivals, weights):
    with pytest.raises(ValueError, match="class 0: "):
        certifier(Unbounded()).blocking_ceiling(0, np.array(rivals, int), np.array(weights))


@pytest.mark.parametrize("scale", [1.0, 3e5, 5e-324, 1e308])
def test_blocking_classes_prove_the_same_in_any_unit(scale):
    """Weights 2 and 1 and 1, the first of them in two parts; the last class, and the first for
    another; and a weight that vanishes beside another is none.
    """
    W, b = np.zeros((C, D)), np.array([0.5, 1.0, -2.0, 0.25, 0.0])
    W[1:4, 0] = 0.3, -0.3, -0.3
    bound_of = certifier(Box(1.0), W, b).blocking_ceiling
    shares = np.array([0.5, 0.25, 0.25])
    A = -(shares @ np.log(shares)) + shares @ b[1:4] - b[0]
    found = bound_of(0, [1, 1, 2, 3], np.full(4, 1.0) * scale)
    assert found == pytest.approx(1 / (1 + math.exp(A)), rel=1e-10)
    assert bound_of(0, [2, 4], [1e300, 1e-300]) == pytest.approx(1 / (1 + math.exp(-2.8)))
    for t, rival in ((0, C - 1), (1, 0)):
        ceiling = certifier(Box(1.0)).blocking_ceiling(t, [rival], [scale])
        assert ceiling == pytest.approx(0.5)
