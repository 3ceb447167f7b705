"""The explorers' formulas (JavaScript) against the library's, on random and tied inputs."""

import numpy as np
import pytest

from papers.explorers import AttentionExplorer, FoldExplorer, HardmaxExplorer, examples
from papers.hardmax.dynamics import TIE_TOLERANCE, attention
from papers.margins import scalar
from papers.margins.jacobian import attend, attention_jacobian_blocks


def test_attention_weights_covariances_and_determinants_agree(javascript):
    rng = np.random.default_rng(3)
    couplings, turns = rng.normal(size=30) * 2, rng.uniform(-180, 180, size=30)
    cases = [
        {"X": rng.normal(size=(int(rng.integers(2, 9)), 2)).tolist(), "coupling": c, "turn": turn}
        for c, turn in zip(couplings, turns, strict=True)
    ]
    body = """
    return argument.map(({X, coupling, turn}) => {
      const M = m.couplingMatrix(coupling, turn);
      const quick = m.evaluator(X.slice(0, -1), M);
      const fast = {fast: quick.determinant(X.at(-1)), e: quick.residual(X.at(-1))};
      return {...m.attend(X.at(-1), X.slice(0, -1), M), ...m.positions(X, M), ...fast};
    });"""
    for case, seen in zip(cases, javascript("attention", body, cases), strict=True):
        explorer = AttentionExplorer(**case)
        exact = attend(np.array(case["X"]), explorer.M, np.eye(2))
        np.testing.assert_allclose(seen["weights"], exact.weights[-1, :-1], rtol=1e-10)
        np.testing.assert_allclose(seen["mean"], exact.mean[-1], atol=1e-10)
        np.testing.assert_allclose(seen["covariance"], exact.covariance[-1], atol=1e-10)
        blocks = attention_jacobian_blocks(np.array(case["X"]), explorer.M, np.eye(2))
        np.testing.assert_allclose(seen["determinants"], np.linalg.det(blocks), atol=1e-10)
        np.testing.assert_allclose(explorer.determinants, np.linalg.det(blocks))
        assert seen["support"] == explorer.support_token
        assert seen["fast"] == pytest.approx(seen["determinant"], abs=1e-12)
        np.testing.assert_allclose(seen["e"], np.subtract(case["X"][-1], seen["mean"]), atol=1e-12)


def test_the_drawn_curve_is_where_the_function_vanishes_and_preimages_are_counted(javascript):
    body = """
    const field = m.sampleField((x) => x[0] * x[0] + x[1] * x[1] - 1, 2);
    const next = (p, k) => p[(k + 1) % p.length];
    const area = (p) =>
      p.reduce((sum, [x, y], k) => sum + (x * next(p, k)[1] - y * next(p, k)[0]) / 2, 0);
    return {points: m.contour(field, 0).flat(),
            area: m.regionBelow(field, 0).reduce((sum, p) => sum + area(p), 0)};"""
    seen = javascript("field", body)
    points = np.array(seen["points"])
    np.testing.assert_allclose(np.hypot(*points.T), 1, atol=1e-3)
    angles = np.sort(np.arctan2(points[:, 1], points[:, 0]))
    assert np.diff(angles, append=angles[0] + 2 * np.pi).max() < 0.1
    assert seen["area"] == pytest.approx(np.pi, rel=2e-3)
    # x -> x^3 - x in the first coordinate: three preimages near 0, one far out
    body = """
    const map = ([u, v]) => [u * u * u - u, v];
    return argument.map((e) => m.countPreimages(map, e, [[-2, -2], [2, 2.01]], 56));"""
    places = [[0.01, 0.013], [0.3, -0.4], [1.5, 0.2], [-0.9, 0.7]]
    assert javascript("field", body, places) == [3, 3, 1, 1]


def test_the_fold_explorer_s_moments_and_solutions_agree(javascript):
    rng = np.random.default_rng(11)
    cases = [
        {
            "past": rng.uniform(-2.5, 2.5, size=int(rng.integers(1, 7))).tolist(),
            "coupling": float(rng.uniform(-3, 5)),
            "level": float(rng.uniform(-2, 2)),
        }
        for _ in range(40)
    ]
    body = """
    return argument.map(({past, coupling, level}) => ({
      ...m.moments(0.7, past, coupling),
      solutions: m.solutions(level, past, coupling),
      least: m.steepestFold(m.sampleLine(past, coupling)).least,
    }));"""
    folded = 0
    for case, seen in zip(cases, javascript("fold", body, cases), strict=True):
        explorer, past = FoldExplorer(**case), np.array(case["past"])
        exact = scalar.attention_moments(0.7, past, case["coupling"])
        assert seen["mean"] == pytest.approx(float(exact.mean), abs=1e-10)
        assert seen["variance"] == pytest.approx(float(exact.variance), abs=1e-10)
        np.testing.assert_allclose(seen["solutions"], explorer.preimages, atol=1e-8)
        assert seen["least"] == pytest.approx(explorer.smallest_slope, abs=1e-10)
        folded += len(seen["solutions"]) > 1
    assert folded > 2


def _starts() -> list[dict]:
    rng = np.random.default_rng(5)
    cases = [
        {
            "Z": rng.normal(size=(int(rng.integers(1, 9)), 2)).tolist(),
            "alpha": float(rng.uniform(0.1, 4)),
            "ratio": float(rng.uniform(1, 10)),
            "angle": float(rng.uniform(0, 180)),
        }
        for _ in range(30)
    ]
    presets = [examples.settings(preset) for preset in examples.PRESETS["hardmax"]]
    # The presets contain exact ties. Turned, they are ties up to rounding, which the tolerance must
    # still see.
    turn = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    turned = [preset | {"Z": (np.array(preset["Z"]) @ turn).tolist()} for preset in presets]
    return cases + presets + turned


def test_hardmax_layers_and_leaders_agree(javascript):
    body = """
    return argument.map(({Z, alpha, ratio, angle}) => {
      const states = m.trajectory(Z, m.scoreMatrix(ratio, angle), alpha, 12);
      return {states: states.map((state) => state.Z), C: states[0].C, leads: m.firstLeads(states)};
    });"""
    cases = _starts()
    ties = 0
    for case, seen in zip(cases, javascript("hardmax", body, cases), strict=True):
        explorer = HardmaxExplorer(**case, layers=12)
        np.testing.assert_allclose(seen["states"], explorer.states, atol=1e-9)
        np.testing.assert_array_equal(np.array(seen["leads"]) >= 0, explorer.leaders)
        P = attention(np.array(case["Z"]), explorer.A, tol=TIE_TOLERANCE)
        assert seen["C"] == [np.flatnonzero(row).tolist() for row in P]
        ties += sum(len(chosen) > 1 for chosen in seen["C"])
    assert ties > 0


def test_warm_layers_agree_and_cool_down_to_hardmax(javascript):
    body = """
    return argument.map(({Z, alpha, ratio, angle, temperature}) =>
      m.trajectory(Z, m.scoreMatrix(ratio, angle), alpha, 6, temperature)
        .map((state) => state.Z));"""
    temperatures = np.geomspace(0.05, 3, 20)
    cases = [c | {"temperature": T} for c, T in zip(_starts()[:20], temperatures, strict=True)]
    for case, seen in zip(cases, javascript("hardmax", body, cases), strict=True):
        explorer = HardmaxExplorer(**case, layers=6)
        np.testing.assert_allclose(seen, explorer.states, atol=1e-9)
        assert not explorer.leaders.any()
    start = examples.settings(examples.PRESETS["hardmax"][0]) | {"layers": 3}
    cold, hard = HardmaxExplorer(**start, temperature=1e-3), HardmaxExplorer(**start)
    np.testing.assert_allclose(cold.states, hard.states, atol=1e-6)
