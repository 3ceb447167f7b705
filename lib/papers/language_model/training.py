"""Training as a function: AdamW on the cross-entropy, plus any penalty on the token embeddings.

The objective of one step on a batch of windows w is

    L = mean over predictions of -log p(w[t + 1] | w[..t])  +  lambda * penalty(W_E[w]),

with lambda = 0 leaving the plain GPT, bit for bit. Everything random is a function of ``(seed,
step)``: batches do not depend on lambda, and a run that was killed and resumed gives the losses of
a run that was not. Learning rates rise linearly and then follow a cosine; gradients of model and
penalty are clipped apart, so that the penalty's parameters cannot shorten the model's step.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.configuration import (
    TrainingConfig,
    configuration_hash,
    draw_batch,
    learning_rate,
)
from papers.language_model.gpt import GPT
from papers.language_model.tokens import Tokens, windows
from softgeom.writing import set_aside, write_bytes

logger = logging.getLogger("softgeom")

# embeddings (B, T, D) -> scalar; an nn.Module's parameters are trained along
Penalty = Callable[[Tensor], Tensor]
Report = Callable[[dict[str, float]], None]

# What a checkpoint holds.
_ENTRIES = {
    "fingerprint",
    "step",
    "optimizer",
    "best",
    "losses",
    "penalties",
    "evaluations",
    "stopped_early",
} | {"model", "penalty_state"}


@dataclass
class Training:
    """A finished run: the model, its penalty, and what happened."""

    model: GPT
    penalty: Penalty | None
    losses: list[float] = field(default_factory=list)  # cross-entropy of each step's batch, in nats
    # the penalty of each step's batch, before lambda
    penalties: list[float] = field(default_factory=list)
    # step, training, validation, penalty, ...
    evaluations: list[dict[str, float]] = field(default_factory=list)
    resumed_at: int = 0  # step of the checkpoint that this run started from
    stopped_early: bool = False


class DivergedError(FloatingPointError):
    """Loss or gradient is not finite: at ``step``; ``checkpoint`` has the last good state."""

    def __init__(self, step: int, what: str, checkpoint: Path | None) -> None:
        kept = (
            f"the state before it is kept in {checkpoint.name}"
            if checkpoint
            else "no checkpoint was asked for"
        )
        super().__init__(
            f"the {what} is not finite at step {step}; {kept}: lower the learning rate or "
            "the penalty."
        )
        self.step = step
        self.checkpoint = checkpoint


def resolve_device(device: str = "auto") -> torch.device:
    """The named device; ``auto`` is a CUDA GPU where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(device)


def train(
    model: GPT,
    tokens: Tokens,
    validation: Tokens,
    config: TrainingConfig,
    *,
    penalty: Penalty | None = None,
    checkpoint: Path | None = None,
    device: str = "auto",
    report: Report | None = None,
) -> Training:
    """Train a model in place and say what happened.

    Parameters
    ----------
    model : GPT
        Its ``n_ctx`` is the length of the windows.
    tokens, validation : (n,) integers
        The two corpora; each must hold at least one window.
    config : TrainingConfig
        Everything else.
    penalty : callable (B, T, D) -> scalar, optional
        Given the embeddings of a batch; called only when ``config.penalty_weight`` is positive. A
        module is trained along. It must be deterministic: a resumed run repeats no random draw but
        its own.
    checkpoint : Path, optional
        Written at every evaluation, and read first when it exists: the run then goes on from there.
        A damaged one is set aside.
    device : str
        ``auto``, ``cpu``, ``cuda``, ...
    report : callable, optional
        Given each evaluation as a dictionary.

    Returns
    -------
    Training
        With early stopping, the model of the best evaluation.

    Raises
    ------
    ValueError
        If a corpus is shorter than one window or holds a foreign token, or if the checkpoint is of
        another configuration.
    DivergedError
        If the loss or a gradient stops being finite. The checkpoint then holds the state before
        that step.
    """
    run = _Run(model, tokens, validation, config, penalty, checkpoint, resolve_device(device))
    run.resume()
    while run.step < config.steps and not run.result.stopped_early:
        run.update()
        if run.step % config.evaluate_every == 0 or run.step == config.steps:
            run.evaluate()
            run.save()
            if report is not None:
                report(run.result.evaluations[-1])
    run.restore_best()
    return run.result


@torch.no_grad()
def window_losses(
    model: GPT,
    window_tokens: Tokens,
    *,
    perturb: Callable[[Tensor, slice], Tensor] | None = None,
    batch_size: int = 64,
) -> np.ndarray:
    """Cross-entropy (n, T) in nats, float64, of every prediction in windows (n, T + 1). ``perturb``
    (embeddings (B, T, D), rows) changes embeddings before the first block; ``rows`` says which
    windows they are.
    """
    device = model.W_E.device
    found = []
    for start in range(0, len(window_tokens), batch_size):
        rows = slice(start, start + batch_size)
        batch = torch.from_numpy(window_tokens[rows].astype(np.int64)).to(device)
        embeddings = model.embed(batch[:, :-1])
        if perturb is not None:
            embeddings = perturb(embeddings, rows)
        logits = model.decode(embeddings)
        found.append(
            F.cross_entropy(logits.transpose(1, 2).float(), batch[:, 1:], reduction="none")
            .double()
            .cpu()
        )
    return torch.cat(found).numpy()


class _Run:
    """The state of a run between steps: what a checkpoint holds, and how one step changes it."""

    def __init__(
        self,
        model: GPT,
        tokens: Tokens,
        validation: Tokens,
        config: TrainingConfig,
        penalty: Penalty | None,
        checkpoint: Path | None,
        device: torch.device,
    ) -> None:
        _check_corpus(tokens, model, "training")
        _check_corpus(validation, model, "validation")
        dtype = torch.float64 if config.precision == "float64" else torch.float32
        self.model = model.to(device, dtype)
        self.penalty = penalty.to(device, dtype) if isinstance(penalty, nn.Module) else penalty
        self.tokens, self.config, self.checkpoint, self.device = tokens, config, checkpoint, device
        self.validation = windows(validation, model.config.n_ctx, config.evaluation_windows)
        described = (
            repr(penalty)
            if isinstance(penalty, nn.Module)
            else getattr(penalty, "__qualname__", "")
        )
        self.fingerprint = configuration_hash(model.config, config, tokens, validation, described)
        self.groups = [list(model.parameters())]
        if isinstance(penalty, nn.Module) and config.penalty_weight > 0:
            self.groups.append([p for p in penalty.parameters() if p.requires_grad])
        parameters = [p for group in self.groups for p in group]
        self.optimizer = torch.optim.AdamW(
            [
                {
                    "params": [p for p in parameters if p.ndim >= 2],
                    "weight_decay": config.weight_decay,
                },
                {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
        )
        self.decode = torch.compile(model.decode) if config.compile else model.decode
        self.step = 0
        self.best: dict[str, Any] | None = None
        self.result = Training(model, self.penalty)

    def update(self) -> None:
        """One step of AdamW; raises :class:`DivergedError` before any parameter has changed."""
        cross_entropy, penalty = self._losses()
        loss = cross_entropy + self.config.penalty_weight * penalty
        if not math.isfinite(loss.item()):
            self._stop("loss")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for group in self.groups:
            if not math.isfinite(nn.utils.clip_grad_norm_(group, self.config.clip_norm).item()):
                self._stop("gradient")
        for options in self.optimizer.param_groups:
            options["lr"] = learning_rate(self.config, self.step)
        self.optimizer.step()
        self.result.losses.append(cross_entropy.item())
        self.result.penalties.append(penalty.item())
        self.step += 1

    def _losses(self) -> tuple[Tensor, Tensor]:
        batch = draw_batch(self.tokens, self.config, self.model.config.n_ctx, self.step).to(
            self.device
        )
        embeddings = self.model.embed(batch[:, :-1])
        penalty = torch.zeros((), device=self.device)
        if self.penalty is not None and self.config.penalty_weight > 0:
            penalty = self.penalty(embeddings)  # outside autocast: a determinant needs its digits
        half = self.config.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16) if half else contextlib.nullcontext():
            logits = self.decode(embeddings)
        if half:
            logits = logits.float()
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()), penalty

    def evaluate(self) -> None:
        """Append training loss since the last time, validation loss, size of embeddings."""
        since = int(self.result.evaluations[-1]["step"]) if self.result.evaluations else 0
        row = {
            "step": self.step,
            "training": float(np.mean(self.result.losses[since:])),
            "validation": float(window_losses(self.model, self.validation).mean()),
            "penalty": float(np.mean(self.result.penalties[since:])),
            "embedding_rms": self.model.W_E.detach().pow(2).mean().sqrt().item(),
        }
        self.result.evaluations.append(row)
        if self.config.patience:
            if self.best is None or row["validation"] < self.best["validation"]:
                state = copy.deepcopy(self._modules_state())
                self.best = {"validation": row["validation"], "step": self.step, **state}
            elif self.step - self.best["step"] >= self.config.patience * self.config.evaluate_every:
                self.result.stopped_early = True

    def restore_best(self) -> None:
        """After early stopping, go back to the model of the best evaluation."""
        if self.best is not None:
            self._load_modules(self.best)

    def save(self) -> None:
        """Write the checkpoint: a kill or a full disk leaves the old one or the new one."""
        if self.checkpoint is None:
            return
        state = {
            "fingerprint": self.fingerprint,
            "step": self.step,
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "losses": self.result.losses,
            "penalties": self.result.penalties,
            "evaluations": self.result.evaluations,
            "stopped_early": self.result.stopped_early,
            **self._modules_state(),
        }
        content = io.BytesIO()  # torch does not say which file could not be written
        torch.save(state, content)
        write_bytes(self.checkpoint, content.getbuffer())

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one of this configuration."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        state = self._kept()
        if state is None:
            return
        if state["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.checkpoint.name} belongs to another configuration, corpus or "
                f"penalty ({state['fingerprint']}, this run is {self.fingerprint}): delete it or "
                "choose another name."
            )
        self._load_modules(state)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = self.result.resumed_at = state["step"]
        self.best = state["best"]
        for name in ("losses", "penalties", "evaluations", "stopped_early"):
            setattr(self.result, name, state[name])

    def _kept(self) -> dict[str, Any] | None:
        """What the checkpoint holds; None when it is damaged: it is set aside."""
        assert self.checkpoint is not None
        # a file that cannot be read is not a damaged one
        content = io.BytesIO(self.checkpoint.read_bytes())
        try:
            state = torch.load(content, map_location=self.device, weights_only=True)
            if not isinstance(state, dict) or not state.keys() >= _ENTRIES:
                raise ValueError("it holds something else")
        except Exception as damage:  # torch, zipfile and pickle each have errors of their own
            aside = set_aside(self.checkpoint)
            logger.warning(
                "checkpoint %s is damaged (%s): set aside as %s, trained again from the start",
                self.checkpoint.name,
                str(damage).partition("\n")[0],
                aside.name,
            )
            return None
        return state

    def _modules_state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "penalty_state": self.penalty.state_dict()
            if isinstance(self.penalty, nn.Module)
            else None,
        }

    def _load_modules(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        if isinstance(self.penalty, nn.Module):
            self.penalty.load_state_dict(state["penalty_state"])

    def _stop(self, what: str) -> None:
        self.save()  # parameters are still those of the last good step
        raise DivergedError(self.step + 1, what, self.checkpoint)


def _check_corpus(tokens: Tokens, model: GPT, name: str) -> None:
    needed = model.config.n_ctx + 1
    if len(tokens) < needed:
        raise ValueError(
            f"the {name} corpus has {len(tokens)} tokens, one window needs {needed}: use "
            "more text or a shorter context."
        )
    if tokens.min() < 0 or tokens.max() >= model.config.d_vocab:
        raise ValueError(
            f"the {name} corpus holds tokens outside the vocabulary 0..{model.config.d_vocab - 1}: "
            "encode it with this model's own tokenizer."
        )
