"""Prompts on which a prediction can be localised, each with a twin that differs in what the
prediction needs.

*Induction*: random tokens, read twice; the token that followed last time is right. In the twin the
first reading is of other tokens, so that there is nothing to copy. *Indirect objects* (Wang et al.
2023): "When Mary and John went to the store, John gave a drink to" wants Mary; the twin names the
giver the other way round and wants John.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compendium.models.subjects import Subject
from softgeom.circuits import repeated_tokens

_PAIRS = (("Mary", "John"), ("Anna", "Paul"), ("Sarah", "James"), ("David", "Emma"))
_SENTENCE = "When {0} and {1} went to the store, {2} gave a drink to"


@dataclass(frozen=True)
class Prompts:
    """Texts of one length, the token that each should end with, and twins that should not."""

    tokens: Tensor  # (B, T)
    right: Tensor  # (B,)
    wrong: Tensor | None  # (B,) the answer of the twin, where it has one
    twins: Tensor  # (B, T)


def induction_prompts(subject: Subject, count: int, length: int, seed: int) -> Prompts:
    """Random texts of `length` tokens and all but the last token of their repetition."""
    generator = torch.Generator().manual_seed(seed)
    V = subject.model.config.d_vocab
    text = repeated_tokens(V, count, length, generator, start=subject.start)
    other = repeated_tokens(V, count, length, generator, start=subject.start)
    twins = torch.cat((other[:, : length + 1], text[:, length + 1 :]), dim=1)
    return Prompts(text[:, :-1], text[:, -1], None, twins[:, :-1])


def indirect_objects(subject: Subject) -> Prompts:
    """Four sentences and their twins.

    ValueError when the model's tokenizer cuts a name into pieces: then no single token is the
    answer.
    """
    texts = [_SENTENCE.format(a, b, b) for a, b in _PAIRS]
    twins = [_SENTENCE.format(a, b, a) for a, b in _PAIRS]
    names = [[subject.tokenizer.encode(f" {name}") for name in pair] for pair in _PAIRS]
    if any(len(ids) != 1 for pair in names for ids in pair):
        raise ValueError(
            f"{subject.name} cuts names into pieces: it has no single token to answer with."
        )
    right, wrong = torch.tensor([[int(ids[0]) for ids in pair] for pair in names]).T
    return Prompts(_stacked(subject, texts), right, wrong, _stacked(subject, twins))


def _stacked(subject: Subject, texts: list[str]) -> Tensor:
    return torch.cat([subject.read(text) for text in texts])
