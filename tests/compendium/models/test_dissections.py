"""Tables of notebook 35 on small models: sizes, names, nulls beside every number."""

import pytest
import torch

from compendium.models import dissections
from compendium.models.subjects import Subject
from papers import circuits
from papers.language_model import GPT, GPTConfig, train_tokenizer
from softgeom.source import Source


@pytest.fixture(scope="module")
def subject():
    tokenizer = train_tokenizer("a rose is a rose is a rose", 260)
    sizes = dict(d_model=12, n_heads=2, n_layers=2, d_mlp=16, n_ctx=20, init_std=0.4)
    model = GPT(GPTConfig(d_vocab=len(tokenizer), **sizes), seed=3).double().requires_grad_(False)
    return Subject("tiny", model, tokenizer, Source("tiny", "computed"))


@pytest.fixture(scope="module")
def anatomy(subject):
    return circuits.dissect(subject.model, subject.name)


def test_induction_prompts_end_before_the_token_to_repeat_and_twins_have_nothing_to_repeat(subject):
    asked = dissections.induction_prompts(subject, 3, 6, seed=0)
    assert asked.tokens.shape == asked.twins.shape == (3, 12)
    assert torch.equal(asked.right, asked.tokens[:, 6])
    assert torch.equal(asked.tokens[:, 7:], asked.twins[:, 7:])
    assert not torch.equal(asked.tokens[:, 1:7], asked.twins[:, 1:7])
    assert torch.equal(asked.tokens[:, 1:6], asked.tokens[:, 7:])


def test_every_head_is_localised_beside_its_control(subject, anatomy):
    asked = dissections.induction_prompts(subject, 3, 6, seed=0)
    table = dissections.localise(anatomy, asked)
    assert table["name"].tolist() == ["L0.H0", "L0.H1", "L1.H0", "L1.H1"]
    readout = circuits.logit_gap(anatomy, asked.right)
    donor = circuits.mean_donor(circuits.mixed_values(anatomy, asked.tokens)[1])
    total = circuits.effects_of_heads(anatomy, asked.tokens, donor, readout).mean(-1)
    assert table["total"].tolist() == pytest.approx(total.flatten().tolist())
    paths = dissections.paths_to(anatomy, asked, (1, 0))
    assert paths["name"].tolist() == ["L0.H0", "L0.H1"]


def test_atlas_memories_and_decisions_have_a_row_for_each_head_layer_and_position(subject, anatomy):
    vocabulary, seeded = subject.model.config.d_vocab, torch.Generator().manual_seed(0)
    read = circuits.repeated_tokens(vocabulary, 2, 6, seeded, start=subject.start)
    assert len(dissections.atlas(anatomy, read, 6)) == 4
    windows = subject.windows("a rose is a rose is a rose " * 40, 16, 6)
    memories = dissections.memories(anatomy, windows, 4, 0)
    assert len(memories) == 2
    assert memories["detectors"].between(0, 1).all()
    assert memories["purity by chance"].nunique() == 1
    ends = dissections.at_the_unembedding(anatomy, windows[:2])
    assert len(ends) == 32
    assert (ends["rank"] >= 1).all()
    logits = circuits.run(anatomy, windows[:2, :-1]).logits.flatten(0, 1)
    assert ends["winner"].tolist() == logits.argmax(-1).tolist()
