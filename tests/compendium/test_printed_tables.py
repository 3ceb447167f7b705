"""Printed intervals compared: on tables made up so that every answer is known, and the entropy
bound against random shares.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from compendium import printed_tables


def test_robustness_knows_gaps_and_overlaps():
    rows = [
        ("a", "noise", "cross-entropy", 1, 10.0, 9.0, 11.0),
        ("a", "noise", "margin-regularized", 1, 8.0, 7.0, 9.5),
        ("a", "noise", "cross-entropy", 2, 20.0, 18.0, 22.0),
        ("a", "noise", "margin-regularized", 2, 12.0, 11.0, 13.0),
    ]
    columns = [
        "dataset",
        "perturbation",
        "objective",
        "level",
        "median_ratio",
        "ci95_low",
        "ci95_high",
    ]
    found = printed_tables.compare_robustness(pd.DataFrame(rows, columns=columns))
    assert found["gap"].tolist() == [2.0, 8.0]
    assert found["margin_over_plain"].tolist() == pytest.approx([0.8, 0.6])
    assert found["intervals_apart"].tolist() == [False, True]


def test_widening_counts_steps_and_the_last_change():
    assert printed_tables.widening([1.0, 3.0, 2.5]) == {
        "widening": 1,
        "steps": 2,
        "gaps": "1.00, 3.00, 2.50",
        "last_change": pytest.approx(-1 / 6),
    }


def test_settings_compare_each_nonzero_penalty_with_none():
    table = {"dataset": "a", "margin_penalty": [0.0, 0.02, 0.05, 0.1, 0.25]}
    for quantity, stem in printed_tables.STEMS.items():
        table[quantity] = [10.0, 5.0, 6.0, 7.0, 9.5]
        table[f"{stem}_low"], table[f"{stem}_high"] = (
            [9.0, 4.0, 5.0, 6.0, 8.5],
            [11.0, 5.5, 7.0, 8.0, 10.5],
        )
    row = printed_tables.compare_settings(pd.DataFrame(table)).iloc[0]
    assert (row["lower"], row["apart_from_zero"], row["settings"]) == (4, 3, 4)
    assert (row["least_fall"], row["greatest_fall"]) == pytest.approx((0.05, 0.5))
    assert row["rising"]
    assert row["smallest_at"] == 0.02
    assert row["lower_over_larger"] == pytest.approx(5.5 / 8.25)
    assert row["pairs_apart"] == 4  # 0.02 against 0.1, and 0.25 against all three


def test_no_shares_beat_the_entropy_bound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        shares = np.sort(rng.dirichlet(np.full(12, 0.5)))[::-1]
        entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-300)))
        assert np.exp(entropy) <= printed_tables.largest_support_size(shares[:5].sum(), 12) * (
            1 + 1e-12
        )
    assert printed_tables.largest_support_size(5 / 12, 12) == pytest.approx(12.0)


def test_smallest_context_is_the_first_that_allows_both_numbers():
    positions = printed_tables.smallest_context(0.118, 382.08)
    assert printed_tables.largest_support_size(0.118, positions) >= 382.08
    assert printed_tables.largest_support_size(0.118, positions - 1) < 382.08
