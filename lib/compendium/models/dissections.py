"""What notebook 35 asks of a model in parts: its heads one by one, the paths between two of them,
its memories on real text, its last decision.

Every measurement comes with what it would be if there were nothing to find: other neurons' values,
random positions, and for prompts a twin that differs in what the prediction needs. *Induction*:
random tokens, read twice; in the twin the first reading is of other tokens. *Indirect objects*
(Wang et al. 2023): "When Mary and John went to the store, John gave a drink to" wants Mary; in the
twin Mary gave it.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from compendium.models.subjects import Subject
from papers import circuits
from papers.circuits import Anatomy
from softgeom.rows import nearest_rows


@dataclass(frozen=True)
class Prompts:
    """Texts of one length, the token that each should end with, and twins that should not."""

    tokens: Tensor  # (B, T)
    right: Tensor  # (B,)
    twins: Tensor  # (B, T)


def induction_prompts(subject: Subject, count: int, length: int, seed: int) -> Prompts:
    """Random texts of `length` tokens and all but the last token of their repetition."""
    generator = torch.Generator().manual_seed(seed)
    V = subject.model.config.d_vocab
    text = circuits.repeated_tokens(V, count, length, generator, start=subject.start)
    other = circuits.repeated_tokens(V, count, length, generator, start=subject.start)
    twins = torch.cat((other[:, : length + 1], text[:, length + 1 :]), dim=1)
    return Prompts(text[:, :-1], text[:, -1], twins[:, :-1])


def atlas(anatomy: Anatomy, tokens: Tensor, length: int) -> pd.DataFrame:
    """Scores of every head on texts read twice, its copying score, and its name."""
    with torch.no_grad():
        table = circuits.head_scores(anatomy, tokens, length)
        table["copying"] = circuits.copying_scores(circuits.fold_norms(anatomy)).flatten().numpy()
    return _named(table)


def localise(anatomy: Anatomy, prompts: Prompts) -> pd.DataFrame:
    """One row a head: what its loss takes from the right logit above the mean of all, in nats,
    means over the prompts.

    `direct`: its write into the final stream replaced by its mean over the prompts, nothing else
    computed again; `total`: the same with everything behind it computed again; `control`: `total`
    on the twins, where the prediction has nothing to rest on; `restored`: on the twins the head
    alone takes what it had on the prompts, share of the gap between both that comes back.
    """
    readout = circuits.logit_gap(anatomy, prompts.right)
    with torch.no_grad():
        streams, mixed = circuits.mixed_values(anatomy, prompts.tokens)
        twin_streams, twin_mixed = circuits.mixed_values(anatomy, prompts.twins)
        gap = (readout(streams[-1]) - readout(twin_streams[-1])).mean()
    mean, twin_mean = circuits.mean_donor(mixed), circuits.mean_donor(twin_mixed)
    effects = {
        "direct": circuits.direct_effects(anatomy, prompts.tokens, mean, readout),
        "total": circuits.effects_of_heads(anatomy, prompts.tokens, mean, readout),
        "control": circuits.effects_of_heads(anatomy, prompts.twins, twin_mean, readout),
        "restored": circuits.effects_of_heads(anatomy, prompts.twins, mixed, readout) / gap,
    }
    return _by_head(effects).assign(gap=float(gap))


def paths_to(anatomy: Anatomy, prompts: Prompts, receiver: tuple[int, int]) -> pd.DataFrame:
    """What the right logit loses when the receiver's queries, keys or values alone read an earlier
    head, one a row, as on the twins.
    """
    readout = circuits.logit_gap(anatomy, prompts.right)
    with torch.no_grad():
        _, donor = circuits.mixed_values(anatomy, prompts.twins)
    effects = {
        side: circuits.effects_along_paths(anatomy, prompts.tokens, donor, receiver, side, readout)
        for side in ("queries", "keys", "values")
    }
    return _by_head(effects)


def memories(anatomy: Anatomy, windows: Tensor, count: int, seed: int) -> pd.DataFrame:
    """One row a layer: do keys detect a token, do values promote what follows?

    `purity`: mean share of the commonest token read among a neuron's triggers, and `by chance`
    among as many random positions; `detectors`: share of neurons purer than 95 of 100 draws of
    random positions; `promotion`: mean promotion of what follows the triggers, in standard
    deviations over the vocabulary, by the neuron's own value row, and `by chance` by another's;
    `answering`: share of neurons that promote it more than 95 of 100 exchanged value rows of the
    layer do.
    """
    generator = torch.Generator().manual_seed(seed)
    read, following = windows[:, :-1].flatten(), windows[:, 1:].flatten()
    folded = circuits.fold_norms(anatomy)
    triggers = circuits.find_triggers(folded, windows[:, :-1], count)
    pure = circuits.purity(read[triggers.positions])
    chance = circuits.purity_by_chance(read, count, 4000, generator)
    own = circuits.promotion(folded, triggers, following)
    other = circuits.promotion(folded, triggers, following, generator)
    return pd.DataFrame(
        {
            "layer": range(len(own)),
            "purity": pure.mean(1),
            "purity by chance": float(chance.mean()),
            "detectors": (pure > chance.quantile(0.95)).double().mean(1),
            "promotion": own.mean(1),
            "promotion by chance": other.mean(1),
            "answering": (own > other.quantile(0.95, dim=1, keepdim=True)).double().mean(1),
        }
    )


def at_the_unembedding(anatomy: Anatomy, windows: Tensor) -> pd.DataFrame:
    """One row a position: winner, rival across the nearest wall, relative margin, rank of what
    followed, and whether winner and rival are nearest rows.
    """
    with torch.no_grad():
        for layer in circuits.walk(anatomy, windows[:, :-1]):
            last = layer.resid_post
        state = anatomy.ln_final(last).flatten(0, 1)
        decided = circuits.decisions(state, anatomy.W_U, anatomy.b_U)
        logits, following = state @ anatomy.W_U.T + anatomy.b_U, windows[:, 1:].flatten()
        rank = 1 + (logits > logits.gather(-1, following[:, None])).sum(-1)
    W, winners = anatomy.W_U.numpy(), decided.winner.numpy()
    between = np.linalg.norm(W[winners] - W[decided.rival.numpy()], axis=1)
    return pd.DataFrame(
        {
            "winner": winners,
            "rival": decided.rival,
            "rival is runner-up": decided.rival == decided.runner_up,
            "relative margin": decided.margin / state.norm(dim=-1),
            "rank": rank,
            "rows apart": between / np.linalg.norm(W[winners], axis=1),
            "twins": between <= nearest_rows(W, winners)[1] * 1.001,
        }
    )


def _by_head(effects: dict[str, Tensor]) -> pd.DataFrame:
    L, H, _ = next(iter(effects.values())).shape
    columns = {name: of.mean(-1).flatten().double().numpy() for name, of in effects.items()}
    heads = {"layer": np.repeat(np.arange(L), H), "head": np.tile(np.arange(H), L)}
    return _named(pd.DataFrame(heads | columns))


def _named(table: pd.DataFrame) -> pd.DataFrame:
    places = zip(table["layer"], table["head"], strict=True)
    return table.assign(name=[f"L{layer}.H{head}" for layer, head in places])
