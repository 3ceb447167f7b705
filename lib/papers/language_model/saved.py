"""A trained GPT in a folder: safetensors for weights, JSON for its configuration, nothing that
executes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import load_file, save

from papers.language_model.gpt import GPT, GPTConfig
from softgeom.writing import write_bytes, write_text


def save_model(folder: Path, model: GPT) -> None:
    """Write ``model.safetensors`` and ``config.json`` into a folder."""
    kept = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_embeddings:  # W_E under a second name: safetensors wants each tensor once
        del kept["W_U"]
    # Bytes first: what is in memory meets a full disk in one place, which names the file.
    write_bytes(folder / "model.safetensors", save(kept))
    write_text(folder / "config.json", json.dumps(asdict(model.config), indent=1) + "\n")


def load_model(folder: Path) -> GPT:
    """Read what :func:`save_model` wrote. ValueError if the weights are not those of the
    configuration beside them.
    """
    model = GPT(GPTConfig(**json.loads((folder / "config.json").read_text(encoding="utf-8"))))
    tensors = load_file(folder / "model.safetensors")
    if model.config.tie_embeddings and "W_E" in tensors:
        tensors["W_U"] = tensors["W_E"]
    expected, found = (
        {name: tuple(t.shape) for name, t in state.items()}
        for state in (model.state_dict(), tensors)
    )
    if odd := sorted(name for name in expected | found if expected.get(name) != found.get(name)):
        raise ValueError(
            f"{folder.name}/model.safetensors is a checkpoint of another configuration than "
            f"config.json: {odd[0]} has shape {found.get(odd[0])}, expected "
            f"{expected.get(odd[0])}; train it again."
        )
    model.to(tensors["W_E"].dtype).load_state_dict(tensors)
    return model
