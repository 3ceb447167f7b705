"""Fixtures that several chapters share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scanner_fixtures import *  # noqa: F403, fixtures are found by their names


@pytest.fixture
def compendium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty compendium in a temporary folder, where paths.root() points."""
    for folder in ("notebooks/params/own", "data/reference", "data/raw"):
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
    from papers.language_model import GPTConfig

    return GPTConfig(d_vocab=29, d_model=12, n_heads=2, n_layers=2, d_mlp=20, n_ctx=10)


@pytest.fixture
def corpus() -> tuple[np.ndarray, np.ndarray]:
    """Training and validation tokens: each the one before plus 1, 2 or 3, modulo 29."""
    rng = np.random.default_rng(5)
    tokens = np.cumsum(rng.integers(1, 4, 3000)) % 29
    return tokens[:2500].astype(np.int32), tokens[2500:].astype(np.int32)


@pytest.fixture
def quick() -> Any:
    """A training of twelve steps."""
    from papers.language_model import TrainingConfig

    size = dict(steps=12, batch_size=4, warmup_steps=2, evaluate_every=4, evaluation_windows=5)
    return TrainingConfig(**size, learning_rate=1e-2, seed=3)


@pytest.fixture
def as_transformers() -> Callable[[Any], Any]:
    """`as_transformers(model)`: the weights of our Llama in transformers' own."""
    transformers, torch = map(pytest.importorskip, ("transformers", "torch"))

    def halves(W: Any) -> Any:
        """Adjacent rotary pairs (heads, D, K) -> (heads K, D), first members first."""
        return torch.cat((W[..., 0::2], W[..., 1::2]), -1).transpose(1, 2).flatten(0, 1)

    def convert(model: Any) -> Any:
        c = model.config
        config = transformers.LlamaConfig(
            vocab_size=c.d_vocab, hidden_size=c.d_model, intermediate_size=c.d_mlp,
            num_hidden_layers=c.n_layers, num_attention_heads=c.n_heads,
            num_key_value_heads=c.n_kv_heads, max_position_embeddings=c.n_ctx,
            rms_norm_eps=c.rms_norm_eps, tie_word_embeddings=c.tie_embeddings,
            attn_implementation="eager",
            rope_parameters={"rope_type": "default", "rope_theta": c.rotary_base},
        )  # fmt: skip
        state = {"embed_tokens": model.W_E, "norm": model.ln_final.w, "lm_head": model.W_U}
        for i, block in enumerate(model.blocks):
            attn, mlp, at = block.attn, block.mlp, f"layers.{i}"
            state[f"{at}.self_attn.q_proj"] = halves(attn.W_Q)
            state[f"{at}.self_attn.k_proj"] = halves(attn.W_K)
            state[f"{at}.self_attn.v_proj"] = attn.W_V.transpose(1, 2).flatten(0, 1)
            state[f"{at}.self_attn.o_proj"] = attn.W_O.flatten(0, 1).T
            for name, W in {"gate": mlp.W_gate, "up": mlp.W_in, "down": mlp.W_out}.items():
                state[f"{at}.mlp.{name}_proj"] = W.T
            state[f"{at}.input_layernorm"] = block.ln1.w
            state[f"{at}.post_attention_layernorm"] = block.ln2.w
        named = {"model." * (k != "lm_head") + f"{k}.weight": W for k, W in state.items()}
        theirs = transformers.LlamaForCausalLM(config).to(model.W_E.dtype).eval()
        theirs.load_state_dict(named)
        return theirs

    return convert


@pytest.fixture
def write_notebook(compendium: Path):
    """Writes a notebook with a parameters cell and further cells into the compendium."""

    def write(name: str, parameters: str, *cells: str) -> Path:
        import nbformat

        content = [nbformat.v4.new_code_cell(cell) for cell in (parameters, *cells)]
        content[0].metadata["tags"] = ["parameters"]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = nbformat.v4.new_notebook(cells=content, metadata={"kernelspec": kernel})
        path = compendium / "notebooks" / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    return write
