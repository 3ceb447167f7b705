"""Where architectures of Transformers put their norms, seen in their own forward passes with random
weights: results/bench/norm_placement.csv, which notebook 30 reads.

Usage: `.venv/bin/python benchmarks/norm_placement.py`, in the environment of the tests, which has
Transformers. A norm stands *before* a block's work when it was given the stream that the layer was
given; *after* it when the layer hands on what a norm gave out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import AutoConfig, AutoModel

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "norm_placement.csv"
# chosen before any was looked at: decoders of 2022 and later whose weights are public, one a family
# and step of it, and the three of 2018 and 2019 that began
EARLY = ("openai-gpt", "bert", "gpt2")
MODERN = (
    "gpt_neox", "opt", "bloom", "llama", "mistral", "falcon", "phi", "phi3", "stablelm", "qwen2",
    "qwen3", "gemma", "gemma2", "gemma3_text", "olmo", "olmo2", "cohere", "granite",
)  # fmt: skip
_SMALL = {
    "vocab_size": 60, "hidden_size": 32, "n_embd": 32, "intermediate_size": 48, "ffn_dim": 48,
    "num_hidden_layers": 2, "n_layer": 2, "num_attention_heads": 4, "n_head": 4,
    "num_key_value_heads": 2, "word_embed_proj_dim": 32, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


def small_model(name: str) -> torch.nn.Module:
    """A model of this architecture with random weights, small enough to run at once."""
    known = AutoConfig.for_model(name)
    sizes = {key: value for key, value in _SMALL.items() if hasattr(known, key)}
    torch.manual_seed(0)
    return AutoModel.from_config(AutoConfig.for_model(name, **sizes)).double().eval()


def placement(model: torch.nn.Module) -> str:
    """Where the norms of its second layer stand: "before", "after", or "elsewhere", such as on what
    a block is about to add.
    """
    seen: dict[torch.nn.Module, tuple[torch.Tensor, torch.Tensor]] = {}

    def note(module: torch.nn.Module, given: Any, named: Any, result: Any) -> None:
        states = given[0] if given else named.get("hidden_states")
        result = result[0] if isinstance(result, (tuple, list)) else result
        if torch.is_tensor(states) and torch.is_tensor(result):
            seen[module] = (states.detach(), result.detach())

    for module in model.modules():
        module.register_forward_hook(note, with_kwargs=True)
    with torch.no_grad():
        model(torch.arange(3, 11)[None])
    layer = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList))[1]
    norms = [seen[m] for m in layer.modules() if "norm" in type(m).__name__.lower() and m in seen]
    stream, end = seen[layer]
    if any(_same(given, stream) for given, _ in norms):
        return "before"
    return "after" if any(_same(result, end) for _, result in norms) else "elsewhere"


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.allclose(a, b, atol=1e-10))


def main() -> None:
    """Look at every architecture and write the table."""
    rows = [
        {"architecture": name, "time": time, "norm": placement(small_model(name))}
        for time, names in (("early", EARLY), ("modern", MODERN))
        for name in names
    ]
    table = pd.DataFrame(rows)
    table.to_csv(TABLE, index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main()
