"""One run of the barrier sweep: a GPT trained under one arm of 003's margin penalty (Section 7.1).

The objective of a step is cross-entropy + lambda mean_i beta_i, beta_i = -log |det(I - S_i M)|.
Runs of one seed start from the same weights and M, and see the same batches. The arms:

* ``plain``: no penalty;
* ``penalty``: the treatment, with a free M of low rank; ``full``: with a free d x d matrix M;
* ``sham``: M stays at its random start; ``placebo``: M learns, and the embeddings feel one part in
  a million of the gradient (`papers.margins.controls.DosedPrior`);
* ``size``: no M; each embedding has, at every step, the length that it had under the penalty.

The text of this file is part of the name of every recorded run: a change makes all of them stale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from papers.language_model.configuration import TrainingConfig, configuration_hash
from papers.language_model.gpt import GPT, GPTConfig
from papers.language_model.tokens import Tokens
from papers.language_model.training import DivergedError, train
from papers.margins.controls import DosedPrior
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from softgeom.arrays import Floats

ARMS = ("plain", "penalty", "full", "sham", "placebo", "size")
_DOSE = 1e-6  # of the placebo
_NOTED = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the training: where lengths are noted


@dataclass(frozen=True)
class Setting:
    """What all runs of a sweep share; ``corpus`` is a name for `compendium.corpora.load_text`."""

    corpus: str = "imdb"
    characters: int = 40_000_000  # of its training part; 0 takes all
    held_out_characters: int = 1_000_000  # of each other part
    d_vocab: int = 1024
    d_model: int = 128
    n_heads: int = 4
    n_layers: int = 4
    n_ctx: int = 128
    steps: int = 4900  # of 16 x 128 tokens: 10,035,200
    batch_size: int = 16
    learning_rate: float = 3.0e-3
    rank: int = 16  # of M
    stride: int = 8  # of the full M: its mean is over every stride-th position
    evaluations: int = 20  # on the way, evenly
    evaluation_windows: int = 128
    measured_windows: int = 256  # of validation text, for all that is measured at the end
    precision: str = "float32"
    compile: bool = False

    def gpt(self, d_vocab: int) -> GPTConfig:
        """The model's sizes, with the vocabulary that the corpus gave."""
        names = ("d_model", "n_heads", "n_layers", "n_ctx")
        return GPTConfig(
            d_vocab=d_vocab, d_mlp=4 * self.d_model, **{name: getattr(self, name) for name in names}
        )

    def training(self, run: Run) -> TrainingConfig:
        """How a run is trained; lengths alone are no penalty."""
        names = ("steps", "batch_size", "learning_rate", "evaluation_windows")
        return TrainingConfig(
            penalty_weight=0.0 if run.arm in ("plain", "size") else run.penalty_weight,
            seed=run.seed,
            evaluate_every=max(1, self.steps // self.evaluations),
            precision=self.precision,
            compile=self.compile,
            **{name: getattr(self, name) for name in names},
        )


@dataclass(frozen=True)
class Run:
    """One arm, lambda and seed; ValueError for an unknown arm or a lambda that does not fit it."""

    arm: str
    penalty_weight: float
    seed: int

    def __post_init__(self) -> None:
        if self.arm not in ARMS:
            raise ValueError(f"arm is {self.arm!r}: choose one of {', '.join(ARMS)}.")
        if (self.penalty_weight > 0) != (self.arm != "plain"):
            told = "plain has lambda = 0, every other arm a positive one."
            raise ValueError(f"lambda is {self.penalty_weight} in the arm {self.arm}: {told}")

    @property
    def name(self) -> str:
        """Name of its file, such as ``penalty-0.05-1``."""
        return f"{self.arm}-{self.penalty_weight:g}-{self.seed}"


def key(setting: Setting, run: Run) -> str:
    """What a recorded run depends on: the parameters and the text of this file, as a hash."""
    text = Path(__file__).read_text(encoding="utf-8")
    return configuration_hash(asdict(setting), asdict(run), text)


@dataclass(frozen=True)
class Trained:
    """What a run ended with."""

    model: GPT
    prior: EmbeddingPrior | None  # None where none was trained
    lengths: Floats  # (8, V): of the embeddings, at `noted_steps`
    evaluations: list[dict[str, float]]
    diverged_at: int | None  # a step; the last good model is kept then


def noted_steps(steps: int) -> list[int]:
    """The steps before which lengths are noted; the last is the end."""
    return [round(share * steps) for share in _NOTED]


class SizedGPT(GPT):
    """A GPT that notes the lengths of its embeddings on the way, in ``lengths`` (8, V), and, given
    a ``path`` of the same shape, has the path's lengths before every update (linear in between).
    """

    updates: Tensor
    lengths: Tensor

    def __init__(self, config: GPTConfig, seed: int, steps: int, path: Floats | None) -> None:
        super().__init__(config, seed)
        self._noted, self._path = noted_steps(steps), path
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.register_buffer("lengths", torch.zeros(len(self._noted), config.d_vocab))

    def embed(self, tokens: Tensor) -> Tensor:
        """Rows of W_E; where a gradient is wanted, this is the beginning of an update."""
        if torch.is_grad_enabled():
            self.settle()
            self.updates += 1
        return super().embed(tokens)

    @torch.no_grad()
    def settle(self) -> None:
        """Take the lengths of this step, and note them where they are wanted."""
        step, norms = int(self.updates), self.W_E.norm(dim=1)
        if self._path is not None:
            place = np.interp(step, self._noted, np.arange(len(self._noted)))
            low, share = self._path[int(place)], place % 1
            high = self._path[min(int(place) + 1, len(self._path) - 1)]
            wanted = torch.from_numpy((1 - share) * low + share * high).to(norms)
            self.W_E *= (wanted / norms.clamp_min(1e-12))[:, None]
            norms = wanted
        # in a training of few steps some of the places are one
        self.lengths[[place == step for place in self._noted]] = norms


def train_run(
    setting: Setting,
    run: Run,
    tokens: Tokens,
    validation: Tokens,
    d_vocab: int,
    *,
    path: Floats | None = None,
    checkpoint: Path | None = None,
    device: str = "auto",
    report: Callable[[dict[str, float]], None] | None = None,
) -> Trained:
    """Train one run, or go on from its checkpoint.

    ``path`` (8, V) holds the lengths of the run under the penalty, which the arm ``size`` needs.
    ValueError if it has none, or another arm has one.
    """
    if (path is not None) != (run.arm == "size"):
        raise ValueError(f"{run.name}: the arm size needs lengths to follow, and no other does.")
    model = SizedGPT(setting.gpt(d_vocab), run.seed, setting.steps, path)
    penalty = None if run.arm in ("plain", "size") else _penalty(setting, run)
    how: dict[str, Any] = {"checkpoint": checkpoint, "device": device, "report": report}
    config, diverged_at, evaluations = setting.training(run), None, []
    try:
        result = train(model, tokens, validation, config, penalty=penalty, **how)
        evaluations = result.evaluations
    except DivergedError as error:
        diverged_at = error.step
    model.settle()
    model, prior = model.cpu().eval(), None if penalty is None else penalty.prior.cpu().eval()
    return Trained(model, prior, model.lengths.double().numpy(), evaluations, diverged_at)


def prior_config(setting: Setting, arm: str) -> PriorConfig:
    """The reading of M in an arm: of low rank, but in ``full``."""
    if arm == "full":
        return PriorConfig(setting.d_model, rank=0, stride=setting.stride)
    return PriorConfig(setting.d_model, rank=setting.rank)


def _penalty(setting: Setting, run: Run) -> DosedPrior:
    dose = _DOSE if run.arm == "placebo" else 1.0
    penalty = DosedPrior(prior_config(setting, run.arm), run.seed, dose, setting.steps)
    return penalty.requires_grad_(run.arm != "sham")
