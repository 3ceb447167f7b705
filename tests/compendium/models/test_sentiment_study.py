"""The tables of notebook 42 by hand: means over seeds, no leaders where there are no layers, and
what is published stands apart.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from compendium.models import sentiment_study as study

MEASURED = {
    "without_attention": 0.8,
    "alpha": 1.0,
    "leaders": 3.0,
    "leader_share": 0.1,
    "leaders_at_start": 0.9,
    "clusters": 2.0,
    "distance_to_limit": 0.01,
    "same_decision_in_limit": 1.0,
}


def models():
    rows = [
        ("labels, alpha 1", 0, 8, 0.80),
        ("labels, alpha 1", 1, 8, 0.84),
        ("labels, K = 0", 0, 0, 0.86),
    ]
    return pd.DataFrame(
        {"model": n, "seed": s, "layers": k, "accuracy": a, **MEASURED} for n, s, k, a in rows
    )


def test_accuracies_are_means_over_seeds_beside_what_others_reach():
    table = study.accuracy_table(models(), {"a bag of words": 0.865}).set_index("model")
    assert table.index.tolist() == ["labels, alpha 1", "labels, K = 0", "a bag of words"]
    assert table["accuracy"].tolist() == pytest.approx([0.82, 0.86, 0.865])
    assert table.loc["labels, alpha 1", "spread"] == pytest.approx(np.std([0.80, 0.84], ddof=1))
    assert table["leaders"].tolist() == [
        3.0,
        pytest.approx(np.nan, nan_ok=True),
        pytest.approx(np.nan, nan_ok=True),
    ]
    assert table.loc["labels, K = 0", "without_attention"] == pytest.approx(0.8)


def test_depth_asks_models_with_layers_only():
    depth = study.depth_table(models(), None, None, 10)
    assert depth["model"].tolist() == ["labels, alpha 1"] * 2
    assert not depth["published"].any()


def test_what_is_not_published_is_not_measured():
    assert set(study.surrogate_evidence(None).values()) == {None}
