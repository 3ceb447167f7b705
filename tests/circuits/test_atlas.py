"""Heads score what they were made for; products of small factors are those of large ones."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from softgeom.circuits import (
    composition_scores,
    copying_scores,
    fold_norms,
    head_scores,
    ov_circuit,
    qk_circuit,
    repeated_tokens,
    run,
    token_ov_circuit,
)


def test_repeated_tokens_are_a_text_read_twice():
    tokens = repeated_tokens(31, 3, 6, torch.Generator().manual_seed(0), start=30)
    assert tokens.shape == (3, 13)
    assert torch.equal(tokens[:, 1:7], tokens[:, 7:])
    assert all(len(set(row.tolist())) == 6 for row in tokens[:, 1:7])
    assert repeated_tokens(31, 1, 6, torch.Generator().manual_seed(0)).shape == (1, 12)
    with pytest.raises(ValueError, match="40 different tokens"):
        repeated_tokens(31, 3, 40, torch.Generator())


def test_scores_are_means_over_the_patterns(anatomy):
    tokens = repeated_tokens(len(anatomy.W_E), 2, 5, torch.Generator().manual_seed(1), start=0)
    table = head_scores(anatomy, tokens, 5).set_index(["layer", "head"])
    for depth, layer in enumerate(run(anatomy, tokens).layers):
        for head in range(anatomy.sizes["H"]):
            found, pattern = table.loc[depth, head], layer.pattern[:, head]
            expected = {
                "previous": [pattern[b, i, i - 1] for b in range(2) for i in range(1, 11)],
                "duplicate": [pattern[b, i, i - 5] for b in range(2) for i in range(6, 11)],
                "induction": [pattern[b, i, i - 4] for b in range(2) for i in range(6, 11)],
                "first": [pattern[b, i, 0] for b in range(2) for i in range(1, 11)],
            }
            for name, weights in expected.items():
                mean = float(torch.stack(weights).mean())
                assert found[name] == pytest.approx(mean, rel=1e-9), name
    assert table["even"].iloc[0] == pytest.approx(sum(1 / (i + 1) for i in range(6, 11)) / 5)


def test_a_head_that_looks_one_back_and_one_that_looks_for_its_own_token_are_told_apart(anatomy):
    """Two hand-made heads: one scores by distance alone, one matches tokens."""
    block, V = anatomy.blocks[0], 9
    H, D, K = block.W_Q.shape
    one_hot = torch.eye(D, dtype=torch.float64)[:V] * 5
    W_Q, W_K = torch.zeros(2, H, D, K, dtype=torch.float64)
    b_Q, b_K = torch.zeros(2, H, K, dtype=torch.float64)
    # Head 0: the key of position j turned by j, a query turned one step less, so that their angle
    # is zero at j = i - 1.
    b_K[0, 0], b_Q[0, :2] = 20.0, torch.tensor([math.cos(-1.0), math.sin(-1.0)]) * 20
    # Head 1: tokens matched in the slowest pairs of coordinates, which hardly turn.
    W_Q[1, :V, K - 2 :] = W_K[1, :V, K - 2 :] = torch.stack(
        [torch.tensor([math.cos(a), math.sin(a)]) for a in 2 * math.pi * torch.arange(V) / V]
    ).double() * 20  # fmt: skip
    made = replace(
        anatomy, W_E=one_hot, W_U=one_hot, b_U=one_hot.new_zeros(V), rotary_base=1e9,
        blocks=(replace(block, W_Q=W_Q, W_K=W_K, b_Q=b_Q, b_K=b_K,
        ln1=replace(block.ln1, gamma=one_hot.new_ones(D), beta=one_hot.new_zeros(D))),),
    )  # fmt: skip
    tokens = repeated_tokens(V, 2, 6, torch.Generator().manual_seed(0))
    table = head_scores(made, tokens, 6)
    assert table.loc[0, "previous"] > 0.9
    # the token itself takes the other half
    assert table.loc[1, "duplicate"] > 0.3 > 10 * table.loc[1, "induction"]


def test_copying_is_that_of_the_factored_matrix(anatomy):
    with pytest.raises(ValueError, match="not a text of 5 and its repetition"):
        head_scores(anatomy, torch.arange(11)[None], 5)
    folded = fold_norms(anatomy)
    scores = copying_scores(folded)
    for depth in range(len(anatomy.blocks)):
        for head in range(anatomy.sizes["H"]):
            copying = token_ov_circuit(folded, depth, head).copying()
            assert float(scores[depth, head]) == pytest.approx(copying, abs=1e-8)
    with pytest.raises(ValueError, match="use fold_norms first"):
        copying_scores(anatomy)


def test_composition_is_that_of_the_large_matrices(anatomy):
    folded = fold_norms(anatomy)
    scores = composition_scores(folded)
    H, L = anatomy.sizes["H"], anatomy.sizes["L"]
    first, last = folded.blocks[0], folded.blocks[-1]
    for h1, h2 in itertools.product(range(H), range(H)):
        W_OV = ov_circuit(first, h1).full()
        W_QK = qk_circuit(last, h2, 0, anatomy.rotary_base).full()
        read = {"queries": W_QK, "keys": W_QK.T, "values": ov_circuit(last, h2).full()}
        for reader, X in read.items():
            expected = (W_OV @ X).norm() / (W_OV.norm() * X.norm())
            assert math.isclose(scores[reader][0, h1, L - 1, h2], expected, rel_tol=1e-9), reader
    assert not scores["keys"][L - 1].any()  # nobody comes after the last block
