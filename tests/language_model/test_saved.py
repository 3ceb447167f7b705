"""A model comes back as it was; weights of another configuration are refused."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from papers.language_model import GPT, load_model, save_model


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_comes_back_as_it_was(tiny, tmp_path, tied, dtype):
    model = GPT(replace(tiny, tie_embeddings=tied), seed=8).to(dtype)
    tokens = torch.arange(10)[None]
    save_model(tmp_path, model)
    loaded = load_model(tmp_path)
    assert loaded.config == model.config
    assert torch.equal(loaded(tokens), model(tokens))
    weights = load_file(tmp_path / "model.safetensors")
    weights["W_E"] = torch.zeros(30, 12)
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"W_E has shape \(30, 12\), expected \(29, 12\)"):
        load_model(tmp_path)
