import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.language_model import GPT, GPTConfig, generate, rotate


@pytest.fixture
def model(tiny: GPTConfig) -> GPT:
    """With large weights, and gains and biases that are not trivial: no term can be forgotten."""
    model, generator = GPT(tiny, seed=1).double(), torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)
    return model


def tokens_for(config: GPTConfig, batch: int = 3, length: int | None = None) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randint(config.d_vocab, (batch, length or config.n_ctx), generator=generator)


def test_internals_sum_to_the_logits_and_the_future_changes_nothing(model):
    tokens = tokens_for(model.config)
    internals = model.run_with_internals(tokens)
    assert torch.allclose(model(tokens), internals.logits, atol=1e-12, rtol=0)
    writes = sum(layer.head_out.sum(2) + layer.mlp_out for layer in internals.layers)
    assert torch.allclose(internals.resid_final, internals.embed + writes, atol=1e-12)
    changed = tokens.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % model.config.d_vocab
    assert torch.equal(model(tokens)[:, :6], model(changed)[:, :6])
    assert not torch.allclose(model(tokens)[:, 6:], model(changed)[:, 6:])


def test_one_head_by_the_literal_formula(model):
    """Position by position, rotations as 2 x 2 matrices: a second route to scores and write."""
    internals = model.run_with_internals(tokens_for(model.config, batch=1))
    layer, attention, h = internals.layers[1], model.blocks[1].attn, 1
    x, K = layer.attn_in[0], model.config.d_head

    def turned(vector: torch.Tensor, position: int) -> torch.Tensor:
        angles = [position * model.config.rotary_base ** (-2 * pair / K) for pair in range(K // 2)]
        turns = [[[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angles]
        return torch.block_diag(*torch.tensor(turns, dtype=torch.float64)) @ vector

    keys = [turned(x[j] @ attention.W_K[h], j) for j in range(model.config.n_ctx)]
    for i in range(model.config.n_ctx):
        query = turned(x[i] @ attention.W_Q[h], i)
        scores = torch.stack([query @ key / math.sqrt(K) for key in keys[: i + 1]])
        mean = sum(a * x[j] for j, a in enumerate(scores.softmax(0)))
        write = mean @ attention.W_V[h] @ attention.W_O[h]
        assert torch.allclose(layer.scores[0, h, i, : i + 1], scores, atol=1e-12)
        assert torch.allclose(layer.head_out[0, i, h], write, atol=1e-12)


BASES = st.sampled_from([10.0, 10_000.0])


@settings(max_examples=25)
@given(shift=st.integers(0, 300), seed=st.integers(0, 10_000), base=BASES)
def test_rotary_scores_depend_on_offsets_only(shift, seed, base):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 7, 8, generator=generator, dtype=torch.float64)
    here, there = (rotate(q, base, offset) @ rotate(k, base, offset).T for offset in (0, shift))
    assert torch.allclose(here, there, atol=1e-10)
    assert torch.allclose(rotate(q, base, shift).norm(dim=-1), q.norm(dim=-1), atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "near"), [(torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, 0.02)]
)
def test_a_compiler_is_given_the_same_rotation_without_complex_numbers(dtype, near, monkeypatch):
    x = torch.randn(2, 3, 7, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    eager = rotate(x, 10_000.0, offset=3)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.delattr(torch, "view_as_complex")
    written_out = rotate(x, 10_000.0, offset=3)
    assert written_out.dtype is dtype
    assert torch.allclose(eager, written_out, atol=near)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_runs_in_the_type_of_its_weights(tiny, dtype):
    model = GPT(tiny).to(dtype)
    assert model(tokens_for(tiny)).dtype is dtype
    assert model.run_with_internals(tokens_for(tiny)).logits.dtype is dtype


def test_the_seed_decides_the_weights_and_tied_embeddings_are_one_matrix(tiny):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one, two, other = GPT(tiny, seed=1), GPT(tiny, seed=1), GPT(tiny, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.W_E, other.W_E)
    tied = GPT(replace(tiny, tie_embeddings=True))
    assert tied.W_U is tied.W_E
    assert len(list(tied.parameters())) == len(list(GPT(tiny).parameters())) - 1


def test_greedy_continuation_is_the_argmax_and_sampling_is_seeded(model):
    """Also where the window starts to slide."""
    prompt = tokens_for(model.config, 1, 4)[0]
    read = []
    hook = model.register_forward_pre_hook(lambda _, given: read.append(given[0].shape[1]))
    continued = generate(model, prompt, 12, temperature=0)
    hook.remove()
    assert read == [min(t, model.config.n_ctx) for t in range(4, 16)]
    assert torch.equal(continued[:4], prompt)
    for t in range(4, 16):
        window = continued[max(0, t - model.config.n_ctx) : t]
        assert continued[t] == model(window[None])[0, -1].argmax()
    seeds = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
    one, two, other = (generate(model, prompt, 9, generator=seed) for seed in seeds)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
