"""Fixtures that several chapters share."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Tests are judged by what they find, never by how fast a busy machine finds it.
settings.register_profile("house", deadline=None)
# of mutants, whose failures are nobody's examples
settings.register_profile("forgetful", deadline=None, database=None)
settings.load_profile("house")

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The clone that the tests belong to."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def compendium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty compendium in a temporary folder: paths.root() points there and no data folder is
    set.
    """
    for folder in ("notebooks", "params/own", "data/reference", "data/raw"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "Makefile").touch()
    monkeypatch.setenv("SOFTGEOM_ROOT", str(tmp_path))
    monkeypatch.delenv("SOFTGEOM_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


@pytest.fixture
def tiny() -> Any:
    """The configuration of a language model that trains in a blink."""
    pytest.importorskip("torch")
    from softgeom.language_model import GPTConfig

    return GPTConfig(d_vocab=29, d_model=12, n_heads=2, n_layers=2, d_mlp=20, n_ctx=10)


@pytest.fixture
def corpus() -> tuple[np.ndarray, np.ndarray]:
    """Training and validation tokens with something to learn: each is the one before plus 1, 2 or
    3, modulo 29.
    """
    rng = np.random.default_rng(5)
    tokens = np.cumsum(rng.integers(1, 4, 3000)) % 29
    return tokens[:2500].astype(np.int32), tokens[2500:].astype(np.int32)


@pytest.fixture
def quick() -> Any:
    """A training of twelve steps."""
    from softgeom.language_model import TrainingConfig

    return TrainingConfig(
        steps=12,
        batch_size=4,
        learning_rate=1e-2,
        warmup_steps=2,
        evaluate_every=4,
        evaluation_windows=5,
        seed=3,
    )


@pytest.fixture
def write_notebook(compendium: Path):
    """A function that writes a notebook with a parameters cell and further code cells into the
    temporary compendium.
    """

    def write(name: str, parameters: str, *cells: str) -> Path:
        def code(source: str, number: int, tags: list[str]) -> dict:
            return {
                "cell_type": "code",
                "id": str(number),
                "metadata": {"tags": tags} if tags else {},
                "outputs": [],
                "execution_count": None,
                "source": source,
            }

        content = [
            code(parameters, 0, ["parameters"]),
            *(code(c, i + 1, []) for i, c in enumerate(cells)),
        ]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = {
            "cells": content,
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        path = compendium / "notebooks" / f"{name}.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip with the reason."""
    chosen = os.environ.get("SOFTGEOM_DATA")
    if not chosen or not Path(chosen).is_dir():
        pytest.skip("SOFTGEOM_DATA names no folder with real data")
    return Path(chosen)
