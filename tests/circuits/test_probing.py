"""Probes against a least-squares solver, and what is left when their directions go."""

import torch

from papers.circuits import control_task, fit_probe, without

N, D, C, PENALTY = 300, 12, 4, 0.1


def _states_and_labels():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(N, D, generator=generator, dtype=torch.float64)
    labels = (states[:, 0] > 0) + 2 * (states[:, 1] + states[:, 2] > 0)
    states *= torch.linspace(0.1, 30, D, dtype=torch.float64)
    return 5 + states, labels.long()


def test_a_probe_is_ridge_regression_on_standardised_states():
    states, labels = _states_and_labels()
    probe, shuffled = fit_probe(states, torch.stack([labels, labels.roll(1)]), C, PENALTY)
    Z = (states - states.mean(0)) / states.std(0, correction=0)
    onehot = torch.nn.functional.one_hot(labels, C).double()
    # rows sqrt(p N) I with right sides zero are the penalty
    rows = torch.cat((Z, (PENALTY * N) ** 0.5 * torch.eye(D, dtype=torch.float64)))
    shares = onehot.mean(0)
    sides = torch.cat((onehot - shares, torch.zeros(D, C, dtype=torch.float64)))
    expected = Z @ torch.linalg.lstsq(rows, sides).solution + shares
    found = (states - probe.mean) @ probe.W + probe.shares
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    hits = [
        float((of.predict(states) == asked).double().mean())
        for of, asked in ((probe, labels), (shuffled, labels.roll(1)))
    ]
    assert hits[0] > 0.85
    assert hits[1] < 0.5  # 0.25 by chance


def test_without_its_directions_a_probe_reads_one_class():
    states, labels = _states_and_labels()
    (probe,) = fit_probe(states, labels[None], C, PENALTY)
    basis = probe.directions()
    assert basis.shape == (D, C - 1)  # scores sum to one
    rest = without(states, probe.mean, basis)
    scores = (rest - probe.mean) @ probe.W
    assert scores.abs().max() < 1e-10
    away = without(rest, probe.mean, basis)  # twice is once
    torch.testing.assert_close(away, rest, rtol=1e-10, atol=1e-10)
    other = torch.linalg.qr(torch.cat((basis, torch.eye(D, dtype=torch.float64)), 1)).Q[:, C:D]
    torch.testing.assert_close((rest - states) @ other, torch.zeros(N, D - C).double())


def test_the_control_task_has_one_class_for_each_token_from_the_labels_seen():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(40, (5000,), generator=generator)
    labels = (tokens % 10 == 0).long() * 2  # classes 0 and 2, never 1
    drawn = torch.stack([control_task(tokens, labels, generator) for _ in range(100)])
    for kind in range(40):
        assert (drawn[:, tokens == kind] == drawn[:, tokens == kind][:, :1]).all()
    assert set(drawn.unique().tolist()) == {0, 2}
    share = (labels == 2).double().mean()
    assert abs((drawn == 2).double().mean() - share) < 0.02  # as the labels are distributed
    assert not torch.equal(drawn[0], drawn[1])
