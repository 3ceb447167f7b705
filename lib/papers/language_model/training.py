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
from papers.language_model.losses import window_losses
from papers.language_model.tokens import Tokens, windows
from softgeom.writing import set_aside, write_bytes

logger = logging.getLogger("softgeom")

# embeddings (B, T, D) -> scalar; an nn.Module's parameters are trained along
Penalty = Callable[[Tensor], Tensor]

# The fields of a `Training` that a checkpoint holds, and what else it holds.
_RECORDS = ("losses", "penalties", "evaluations", "stopped_early")
_STATES = ("fingerprint", "step", "optimizer", "best", "model", "penalty_state")


@dataclass
class Training:
    """A finished run: the model, its penalty, and what happened."""

    model: GPT
    penalty: Penalty | None
    losses: list[float] = field(default_factory=list)  # cross-entropy of each step's batch, in nats
    penalties: list[float] = field(default_factory=list)  # of each step's batch, before lambda
    # step, training, validation, penalty, embedding_rms
    evaluations: list[dict[str, float]] = field(default_factory=list)
    resumed_at: int = 0  # step of the checkpoint that this run started from
    stopped_early: bool = False


class DivergedError(FloatingPointError):
    """Loss or gradient is not finite: at ``step``; the checkpoint has the last good state."""

    def __init__(self, step: int, what: str, checkpoint: Path | None) -> None:
        kept = f"the state before it is kept in {checkpoint.name}" if checkpoint else "nothing kept"
        super().__init__(
            f"the {what} is not finite at step {step}; {kept}: lower the learning rate or "
            "the penalty."
        )
        self.step = step


def resolve_device(device: str = "auto") -> torch.device:
    """The named device; ``auto`` is a CUDA GPU where there is one, else the CPU."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
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
    report: Callable[[dict[str, float]], None] | None = None,
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
        Given the embeddings of a batch where ``config.penalty_weight`` is positive; a module is
        trained along. It must be deterministic: a resumed run repeats no random draw but its own.
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
    if run.best is not None:
        run.load(run.best)
    return run.result


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
        self.penalty = penalty
        self.module = penalty.to(device, dtype) if isinstance(penalty, nn.Module) else None
        self.tokens, self.config, self.checkpoint, self.device = tokens, config, checkpoint, device
        self.validation = windows(validation, model.config.n_ctx, config.evaluation_windows)
        described = repr(self.module) if self.module else getattr(penalty, "__qualname__", "")
        self.fingerprint = configuration_hash(model.config, config, tokens, validation, described)
        self.groups = [list(model.parameters())]
        if self.module is not None and config.penalty_weight > 0:
            self.groups.append([p for p in self.module.parameters() if p.requires_grad])
        parameters = [p for group in self.groups for p in group]
        matrices = [p for p in parameters if p.ndim >= 2]
        vectors = [p for p in parameters if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
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
        batch = draw_batch(self.tokens, self.config, self.model.config.n_ctx, self.step)
        batch = batch.to(self.device)
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
                modules = copy.deepcopy(self._modules())
                self.best = {"validation": row["validation"], "step": self.step, **modules}
            elif self.step - self.best["step"] >= self.config.patience * self.config.evaluate_every:
                self.result.stopped_early = True

    def save(self) -> None:
        """Write the checkpoint: a kill or a full disk leaves the old one or the new one."""
        if self.checkpoint is None:
            return
        state = {
            "fingerprint": self.fingerprint,
            "step": self.step,
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            **{name: getattr(self.result, name) for name in _RECORDS},
            **self._modules(),
        }
        content = io.BytesIO()  # torch does not say which file could not be written
        torch.save(state, content)
        write_bytes(self.checkpoint, content.getbuffer())

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one of this configuration."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        state = _read_checkpoint(self.checkpoint, self.device)
        if state is None:
            return
        if state["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.checkpoint.name} belongs to another configuration, corpus or "
                f"penalty ({state['fingerprint']}, this run is {self.fingerprint}): delete it or "
                "choose another name."
            )
        self.load(state)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = self.result.resumed_at = state["step"]
        self.best = state["best"]
        for name in _RECORDS:
            setattr(self.result, name, state[name])

    def load(self, modules: dict[str, Any]) -> None:
        """Take the parameters of model and penalty from a checkpoint or the best evaluation."""
        self.model.load_state_dict(modules["model"])
        if self.module is not None:
            self.module.load_state_dict(modules["penalty_state"])

    def _modules(self) -> dict[str, Any]:
        penalty = None if self.module is None else self.module.state_dict()
        return {"model": self.model.state_dict(), "penalty_state": penalty}

    def _stop(self, what: str) -> None:
        self.save()  # parameters are still those of the last good step
        raise DivergedError(self.step + 1, what, self.checkpoint)


def _read_checkpoint(path: Path, device: torch.device) -> dict[str, Any] | None:
    """What a checkpoint holds; None when it is damaged: it is set aside."""
    content = io.BytesIO(path.read_bytes())  # a file that cannot be read is not a damaged one
    try:
        state = torch.load(content, map_location=device, weights_only=True)
        if not isinstance(state, dict) or not state.keys() >= {*_RECORDS, *_STATES}:
            raise ValueError("it holds something else")
    except Exception as damage:  # torch, zipfile and pickle each have errors of their own
        aside = set_aside(path)
        logger.warning(
            "checkpoint %s is damaged (%s): set aside as %s, trained again from the start",
            path.name,
            str(damage).partition("\n")[0],
            aside.name,
        )
        return None
    return state


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
