"""Heads score what they were made for; products of small factors are those of large ones."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from papers.circuits import (
    composition_scores,
    copying_scores,
    explained_by_token,
    find_triggers,
    fold_norms,
    head_scores,
    ov_circuit,
    promotion,
    purity,
    purity_by_chance,
    qk_circuit,
    repeated_tokens,
    run,
    share_of_detectors,
    token_ov_circuit,
)


def test_repeated_tokens_are_a_text_read_twice():
    tokens = repeated_tokens(31, 3, 6, torch.Generator().manual_seed(0), start=30)
    assert tokens.shape == (3, 13)
    assert torch.equal(tokens[:, 1:7], tokens[:, 7:])
    assert all(len(set(row.tolist())) == 6 for row in tokens[:, 1:7])
    assert repeated_tokens(31, 1, 6, torch.Generator().manual_seed(0)).shape == (1, 12)


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


def test_copying_is_that_of_the_factored_matrix(anatomy):
    folded = fold_norms(anatomy)
    scores = copying_scores(folded)
    for depth in range(len(anatomy.blocks)):
        for head in range(anatomy.sizes["H"]):
            copying = token_ov_circuit(folded, depth, head).copying()
            assert float(scores[depth, head]) == pytest.approx(copying, abs=1e-8)


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


@pytest.fixture(scope="module")
def corpus(anatomy):
    return torch.randint(len(anatomy.W_E), (7, 9), generator=torch.Generator().manual_seed(4))


def test_chunks_find_what_one_pass_finds(anatomy, corpus):
    found = find_triggers(anatomy, corpus, 5, chunk=2)
    for depth, layer in enumerate(run(anatomy, corpus).layers):
        fired = layer.mlp_post.flatten(0, 1)  # (63, F)
        largest, values = fired.abs().topk(5, dim=0).values.T, found.values[depth]
        torch.testing.assert_close(values.abs(), largest, rtol=1e-9, atol=1e-12)
        at = fired.T.gather(1, found.positions[depth])
        torch.testing.assert_close(values, at, rtol=1e-9, atol=1e-12)


def test_purity_counts_the_commonest_token():
    assert purity(torch.tensor([[1, 2, 1, 1], [3, 4, 5, 6]])).tolist() == [0.75, 0.25]
    chance = purity_by_chance(torch.tensor([0, 1]), 1, 10, torch.Generator().manual_seed(0))
    assert chance.tolist() == [1.0] * 10


def test_promotion_is_the_gain_in_standard_deviations_of_the_vocabulary(anatomy, corpus):
    folded, found = fold_norms(anatomy), find_triggers(anatomy, corpus, 3)
    following = corpus.flatten().roll(-1)
    score = promotion(folded, found, following)
    block, neuron = folded.blocks[1], 2
    gains = folded.W_U @ block.W_out[neuron]
    z = (gains - gains.mean()) / gains.std(correction=0)
    expected = (z[following[found.positions[1, neuron]]] * found.values[1, neuron].sign()).mean()
    assert math.isclose(score[1, neuron], expected, rel_tol=1e-9)
    # Value rows made of what follows the triggers are promoted by their own keys, not by others'.
    found, centred = find_triggers(anatomy, corpus, 1), folded.W_U - folded.W_U.mean(0)
    values = centred[following[found.positions[..., 0]]] * found.values.sign()  # (L, F, d)
    blocks = [replace(block, W_out=W) for block, W in zip(folded.blocks, values, strict=True)]
    made = replace(folded, blocks=tuple(blocks))
    own = promotion(made, found, following)
    null = promotion(made, found, following, torch.Generator().manual_seed(0))
    assert own.mean() > 2 * null.mean()
    assert (own > 0).all()


def test_a_neuron_that_detects_a_token_is_explained_and_noise_is_not():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 5, (400,), generator=generator)
    noise = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    detector = (tokens == 2).double()[:, None] + 0.1 * noise[:, :1]
    half = torch.arange(400) < 200
    explained = explained_by_token(torch.cat([detector, noise], 1), tokens, half)
    assert explained[0] > 0.9
    assert explained[1:].max() < 0.1
    share, _ = share_of_detectors(torch.cat([detector, noise], 1), tokens, half, generator)
    assert share == 0.25
