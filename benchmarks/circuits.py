"""Our language models beside other people's: logits against Transformers, internals against
TransformerLens, greedy tokens a second against run.c.

Transformers reads the very file of SmolLM2 that our Llama is made from (`gguf_file`), and four tiny
random models of its own are taken apart; the number is the largest difference over the largest
logit. TransformerLens, where it is installed (below version 4; no dependency of ours), is given the
weights of a random GPT of ours, and every intermediate value is compared with the one of its name.
Speeds are tokens a CPU second on one thread, turn by turn, of the small Llama-type model: ours,
which reads the whole window for each token, and with `--run-c BINARY` run.c of
github.com/karpathy/llama2.c (its `make run`), which keeps keys and values and says where its text
is not ours.

Usage: `python benchmarks/circuits.py [--run-c BINARY]`; what cannot be had is left out, and its row
of the committed table stays. Aim: 1e-5 of the largest logit in float32. Writes
results/bench/circuits.csv.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from compendium import paths
from softgeom.checkpoints import RELEASED, load_gguf_llama, load_llama2c
from softgeom.circuits import dissect, run
from softgeom.language_model import GPT, GPTConfig, generate

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "circuits.csv"
SENTENCE = "When Mary and John went to the store, John gave a drink to"
TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
TINY |= {"num_attention_heads": 4, "num_key_value_heads": 2}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run-c", type=Path, help="the compiled run.c")
    parser.add_argument("--repeats", type=int, default=5, help="timed texts of each kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [*logits_of_families(), *logits_of_smollm2(), *internals_of_a_gpt()]
    rows += speeds(options.run_c, options.repeats)
    found = pd.DataFrame(rows, columns=["what", "model", "precision", "number"])
    if TABLE.is_file():
        known = pd.read_csv(TABLE)
        both = known.merge(found[["what", "model"]], how="left", indicator=True)["_merge"]
        found = pd.concat([found, known[(both == "left_only").to_numpy()]])
    found.to_csv(TABLE, index=False, float_format="%.4g", lineterminator="\n")
    print(found.to_string(index=False))


def logits_of_families() -> Iterator[tuple[str, str, str, float]]:
    """Dissections of Transformers' own models, random and tiny, in float64."""
    try:
        import transformers
    except ImportError:
        print("Transformers is not installed: its models are left out")
        return
    gpt2 = transformers.GPT2Config(
        n_embd=32, n_head=4, n_layer=3, vocab_size=101, bos_token_id=0, eos_token_id=0
    )
    kinds = (transformers.LlamaConfig, transformers.Qwen2Config, transformers.GemmaConfig)
    for config in (gpt2, *(kind(vocab_size=101, head_dim=8, **TINY) for kind in kinds)):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
        tokens = torch.randint(101, (2, 24), generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            expected = model(tokens).logits
        yield _difference(run(dissect(model), tokens).logits, expected, type(model).__name__)


def logits_of_smollm2() -> Iterator[tuple[str, str, str, float]]:
    """Our Llama and Transformers', from one file."""
    if not RELEASED["smollm2"].available():
        print("the file of SmolLM2 is not here: softgeom inspect smollm2 fetches it")
        return
    import transformers
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    path = RELEASED["smollm2"].fetch()[0]
    ours = load_gguf_llama(path)
    tokens = torch.as_tensor([int(i) for i in ours.tokenizer.encode(SENTENCE)])[None]
    with torch.no_grad():
        found = ours(tokens)
    del ours
    config = transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    theirs = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    tensors = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=theirs)["tensors"]
    lacking, odd = theirs.load_state_dict(tensors, strict=False)
    if odd or set(lacking) - {"lm_head.weight"}:
        raise ValueError(f"Transformers lacks {lacking} and has no place for {odd}")
    theirs.tie_weights()
    with torch.no_grad():
        expected = theirs.eval()(tokens).logits
    yield _difference(found, expected, "SmolLM2-135M")


def internals_of_a_gpt() -> Iterator[tuple[str, str, str, float]]:
    """A GPT of ours as TransformerLens runs it, in float64; it turns queries and keys itself."""
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        print("TransformerLens is not installed: its internals are left out")
        return
    sizes = GPTConfig(
        d_vocab=101, d_model=32, n_heads=4, n_layers=3, d_mlp=96, n_ctx=24, init_std=0.3
    )
    ours = GPT(sizes, seed=0).double().eval()
    names = ("d_vocab", "d_model", "n_heads", "d_head", "n_layers", "d_mlp", "n_ctx")
    same = {name: getattr(sizes, name) for name in names}
    theirs = HookedTransformer(
        HookedTransformerConfig(
            **same,
            act_fn="gelu",
            normalization_type="LN",
            eps=sizes.layer_norm_eps,
            positional_embedding_type="rotary",
            rotary_dim=sizes.d_head,
            rotary_adjacent_pairs=True,
            rotary_base=int(sizes.rotary_base),
            dtype=torch.float64,
        )
    )
    theirs.load_state_dict(_named_as_transformer_lens(ours, theirs.state_dict()))
    tokens = torch.randint(
        sizes.d_vocab, (2, sizes.n_ctx), generator=torch.Generator().manual_seed(1)
    )
    with torch.no_grad():
        found = ours.run_with_internals(tokens)
        logits, seen = theirs.run_with_cache(tokens)
    pairs = [
        (found.logits, logits),
        (found.embed, seen["hook_embed"]),
        (found.ln_final_scale, seen["ln_final.hook_scale"]),
    ]
    for number, layer in enumerate(found.layers):
        lens = {name.removeprefix(f"blocks.{number}."): value for name, value in seen.items()}
        streams = ("resid_pre", "resid_mid", "mlp_out", "resid_post")
        pairs += [(getattr(layer, name), lens[f"hook_{name}"]) for name in streams]
        for norm in ("ln1", "ln2"):
            pairs.append((getattr(layer, f"{norm}_scale"), lens[f"{norm}.hook_scale"]))
        pairs += [(layer.mlp_pre, lens["mlp.hook_pre"]), (layer.mlp_post, lens["mlp.hook_post"])]
        for name, hook in {"q": "rot_q", "k": "rot_k", "v": "v", "z": "z"}.items():
            pairs.append((getattr(layer, name).transpose(1, 2), lens[f"attn.hook_{hook}"]))
        pairs.append((layer.pattern, lens["attn.hook_pattern"]))
    what = f"largest difference of {len(pairs)} internals from TransformerLens's, each over its "
    most = max(float((ours - lens).abs().max() / lens.abs().max()) for ours, lens in pairs)
    yield f"{what}largest", "a random GPT of three layers", "float64", most


def _named_as_transformer_lens(
    model: GPT, wanted: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Our weights under its names; what it has and we have not is zero, but for its masks."""
    state = {}
    for name, value in wanted.items():
        own = "mask" in name or "IGNORE" in name or "rotary" in name
        state[name] = value if own else torch.zeros_like(value)
    state |= {"embed.W_E": model.W_E, "unembed.W_U": model.W_U.T}
    state |= {"ln_final.w": model.ln_final.w, "ln_final.b": model.ln_final.b}
    parts = {"ln1": ("w", "b"), "ln2": ("w", "b"), "attn": ("W_Q", "W_K", "W_V", "W_O")}
    parts["mlp"] = ("W_in", "b_in", "W_out", "b_out")
    for number, block in enumerate(model.blocks):
        for part, names in parts.items():
            for name in names:
                state[f"blocks.{number}.{part}.{name}"] = getattr(getattr(block, part), name)
    return state


def speeds(binary: Path | None, repeats: int) -> Iterator[tuple[str, str, str, float]]:
    """Greedy texts from the first token to the end of the context."""
    files = [paths.find_data(name) for name in ("models/aidreams260K.bin", "models/tok512.bin")]
    if None in files:
        print("the small Llama-type model is not in the data folder: speeds are left out")
        return
    model = load_llama2c(*files)
    start, name, length = (
        torch.tensor([model.tokenizer.beginning]),
        "AI Dreams 260K",
        model.config.n_ctx - 1,
    )
    seconds: dict[str, list[float]] = {}
    for _ in range(repeats):
        began = time.process_time()
        text = generate(model, start, length, temperature=0)
        seconds.setdefault("ours", []).append(time.process_time() - began)
        if binary:
            command = [binary, files[0], "-z", files[1], "-t", "0", "-n", str(length + 1)]
            before = _children()
            said = subprocess.run(command, capture_output=True, check=True).stdout.decode(
                errors="replace"
            )
            seconds.setdefault("run.c", []).append(_children() - before)
            ours = model.tokenizer.decode([int(i) for i in text[1:]])
            if said.strip()[:200] != ours.strip()[:200]:
                print(f"run.c says {said[:80]!r}, ours {ours[:80]!r}")
    for what, times in seconds.items():
        yield f"tokens a CPU second: {what}", name, "float32", length / statistics.median(times)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _difference(found: Any, expected: Any, model: str) -> tuple[str, str, str, float]:
    error = float((found.to(expected.dtype) - expected).abs().max() / expected.abs().max())
    return (
        "largest difference of logits over the largest",
        model,
        str(expected.dtype).removeprefix("torch."),
        error,
    )


if __name__ == "__main__":
    main()
