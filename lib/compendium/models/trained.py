"""A GPT with its tokenizer and what its training was like: made, written, read again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from papers.language_model.configuration import TrainingConfig
from papers.language_model.gpt import GPT, GPTConfig
from papers.language_model.saved import load_model, save_model
from papers.language_model.tokens import BytePairTokenizer, Tokens
from papers.language_model.training import train
from softgeom.source import Source


@dataclass(frozen=True)
class Trained:
    """A model, the tokenizer that it reads through, and what is known about its training."""

    model: GPT
    tokenizer: BytePairTokenizer
    about: dict[str, Any]  # evaluations, losses, seed, training, source


def train_gpt(
    gpt: GPTConfig,
    config: TrainingConfig,
    tokens: Tokens,
    validation: Tokens,
    tokenizer: BytePairTokenizer,
    source: Source,
    device: str,
    *,
    checkpoint: Path | None,
) -> Trained:
    """Train a GPT whose weights at the start come from the training's seed; prints evaluations."""
    model = GPT(gpt, seed=config.seed)
    result = train(
        model,
        tokens,
        validation,
        config,
        checkpoint=checkpoint,
        device=device,
        report=lambda row: print(
            f"step {row['step']}: validation loss {row['validation']:.3f} nats", flush=True
        ),
    )
    about = {
        "evaluations": result.evaluations,
        "losses": result.losses,
        "seed": config.seed,
        "training": asdict(config),
        "source": asdict(source),
    }
    return Trained(model.cpu(), tokenizer, about)


def write(folder: Path, trained: Trained) -> None:
    """Weights as safetensors, the rest as JSON: nothing that executes."""
    save_model(folder, trained.model)
    trained.tokenizer.save(folder / "tokenizer.json")
    (folder / "about.json").write_text(json.dumps(trained.about, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Trained:
    """What `write` wrote."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return Trained(load_model(folder), BytePairTokenizer.load(folder / "tokenizer.json"), about)
