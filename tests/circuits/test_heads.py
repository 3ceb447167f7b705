"""Heads as circuits: against plain attention, dense spectra, and hand-made rotations."""

import math

import pytest
import torch

from papers.circuits import (
    FactoredMatrix,
    attend,
    decisions,
    dissect,
    offset_profile,
    qk_circuit,
    relative_error,
    rotation,
    run,
    scores_by_offset,
    token_ov_circuit,
    weights_as_printed,
    writes_by_ov,
)


def test_scores_come_from_the_offset_circuits_alone(anatomy, tokens):
    layer = run(anatomy, tokens).layers[-1]
    found = scores_by_offset(anatomy.blocks[-1], layer.attn_in, anatomy.rotary_base)
    assert relative_error(found, layer.scores) < 1e-10


def test_an_anatomy_on_another_device_is_used_there(anatomy, tokens):
    """PyTorch's device `meta` computes shapes and refuses to mix with the CPU, as CUDA does."""
    block, x = anatomy.to("meta").blocks[-1], run(anatomy, tokens).layers[-1].attn_in.to("meta")
    parts = attend(block, x, anatomy.rotary_base)
    scores = scores_by_offset(block, x, anatomy.rotary_base)
    norm, W_U = block.ln1.matrix(x), anatomy.to("meta").W_U
    lens = anatomy.to("meta").unembed(x)
    found = [scores, writes_by_ov(block, x, parts["pattern"]), norm, lens]
    found += [*weights_as_printed(block, x), decisions(x, W_U).margin]
    assert {each.device.type for each in found} == {"meta"}
    assert scores.shape == parts["scores"].shape
    assert anatomy.to("cpu").sizes == anatomy.sizes


def test_writes_come_from_the_ov_circuits_and_sum_to_the_attention(anatomy, tokens):
    for block, layer in zip(anatomy.blocks, run(anatomy, tokens).layers, strict=True):
        found = writes_by_ov(block, layer.attn_in, layer.pattern)
        assert relative_error(found, layer.head_out) < 1e-10
        assert relative_error(layer.resid_pre + found.sum(2), layer.resid_mid) < 1e-10


def test_spectra_of_the_small_product_are_those_of_the_large(anatomy):
    D, K = anatomy.sizes["D"], anatomy.sizes["K"]
    circuit = qk_circuit(anatomy.blocks[0], 0, 3)
    assert circuit.rank() == int(torch.linalg.matrix_rank(circuit.full())) <= K < D
    values = torch.linalg.svdvals(circuit.full())[:K]
    torch.testing.assert_close(circuit.singular_values(), values, rtol=1e-8, atol=1e-12)
    circuit = token_ov_circuit(anatomy, 0, 0)
    small, dense = circuit.eigenvalues(), circuit.full()
    sums = [complex(small.sum()), complex(small.square().sum())]
    traces = [float(dense.trace()), float((dense @ dense).trace())]
    assert sums == pytest.approx(traces, rel=1e-9, abs=1e-9)
    assert -1 <= circuit.copying() <= 1


def test_copying_is_one_for_a_copier():
    A = torch.randn(9, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert FactoredMatrix(A, A.T).copying() == pytest.approx(1)
    assert FactoredMatrix(A, -A.T).copying() == pytest.approx(-1)


def test_the_symmetric_part_of_a_narrow_circuit_has_as_many_signs_of_either_kind():
    g = torch.Generator().manual_seed(0)
    A, B = (torch.randn(9, 3, generator=g, dtype=torch.float64) for _ in range(2))
    found = FactoredMatrix(A, B.T).symmetric_eigenvalues()
    dense = torch.linalg.eigvalsh((A @ B.T + B @ A.T) / 2)
    torch.testing.assert_close(found, dense[[0, 1, 2, -3, -2, -1]])
    assert (int((found > 1e-9).sum()), int((found < -1e-9).sum())) == (3, 3)
    assert FactoredMatrix(A, A.T).symmetric_eigenvalues().min() > -1e-9  # dependent columns
    with pytest.raises(ValueError, match="not square"):
        FactoredMatrix(A, B.T[:, :8]).symmetric_eigenvalues()


def test_rotations_compose_by_their_offsets():
    R = [rotation(i, 6, 10.0) for i in range(5)]
    torch.testing.assert_close(R[4] @ R[1].T, rotation(3, 6, 10.0))
    torch.testing.assert_close(R[1] @ R[4].T, rotation(-3, 6, 10.0))
    one = rotation(1, 2, 10.0)  # the first pair turns by one radian per position
    c, s = math.cos(1), math.sin(1)
    torch.testing.assert_close(one, torch.tensor([[c, s], [-s, c]], dtype=torch.float64))


def test_the_offset_profile_is_the_mean_over_all_pairs(anatomy, tokens):
    attn_in = run(anatomy, tokens).layers[0].attn_in
    found = offset_profile(anatomy.blocks[0], attn_in, torch.tensor([0, 2]), anatomy.rotary_base)
    states = attn_in.flatten(0, 1)
    W_QK = qk_circuit(anatomy.blocks[0], 1, 2, anatomy.rotary_base).full()
    pairs = states @ W_QK @ states.T / math.sqrt(anatomy.sizes["K"])
    assert relative_error(found[1, 1][None], pairs.mean()[None]) < 1e-9


def test_both_printed_lines_are_one_causal_softmax(model):
    anatomy = dissect(model, "a model")
    block, x = anatomy.blocks[0], torch.randn(1, 6, anatomy.sizes["D"], dtype=torch.float64)
    first, second = weights_as_printed(block, x)
    assert relative_error(second, first) < 1e-12
    assert (first.triu(1) == 0).all()
    torch.testing.assert_close(first.sum(-1), torch.ones_like(first[..., 0]))
    scores = x[0, 3] @ block.W_Q[1] @ (x[0, :4] @ block.W_K[1]).T / block.W_Q.shape[-1] ** 0.5
    torch.testing.assert_close(first[0, 1, 3, :4], scores.softmax(-1))
