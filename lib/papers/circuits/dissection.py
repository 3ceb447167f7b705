"""Taking a live model apart, and the identities that its parts must meet before anybody reads
anything off them.

A dissection is right when its parts compute what the model computes and when the chapter's
identities hold on them. So they are tried on load, on a few fixed tokens, and the first that fails
is named:

    the weights are finite;  parts = model (where a model is at hand that runs);
    final state = sum of writers;  folded = unfolded;  logits = sum of writers.
"""

from typing import Any

import torch
from torch import Tensor, nn

from papers.circuits.anatomy import Anatomy, BlockAnatomy, relative_error, run
from papers.circuits.families import dissect_weights
from papers.circuits.folding import fold_norms
from papers.circuits.layernorm import Normalisation
from papers.circuits.stream import logit_shares, writers

# Rounding of a pass, relative to the largest entry. Transformers turns queries and keys in single
# precision for every type of model.
_EXACT = {torch.float64: 1e-10, torch.float32: 1e-4}
_AS_THE_MODEL = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 1e-2}  # others 5e-2
_TRIED = 12  # tokens of each of two sequences


def dissect(
    model: Any, name: str = "", dtype: torch.dtype = torch.float64, *, check: bool = True
) -> Anatomy:
    """Take a decoder apart, in float64 by default so that identities can be exact (float32 takes
    half the memory), and try the identities.

    The model is a GPT or Llama of `papers.language_model`, or a GPT-2, Llama, Qwen2 or Gemma (1)
    of Transformers, see `dissect_weights`. ValueError when the architecture is not covered, or with
    the name of the first identity that fails.
    """
    if dtype not in _EXACT:
        raise ValueError(
            f"an anatomy in {dtype} would be rounding: take torch.float64 or torch.float32."
        )
    theirs = getattr(getattr(model, "config", None), "model_type", None)
    if theirs is not None:
        anatomy = dissect_weights(model.config, model.state_dict(), name or str(theirs), dtype)
    elif all(hasattr(model, part) for part in ("blocks", "W_E", "W_U", "ln_final")):
        anatomy = _dissect_own(model, name or type(model).__name__, dtype)
    else:
        raise ValueError(
            f"{type(model).__name__} is not a decoder that can be taken apart: give a GPT or Llama "
            "of papers.language_model, or a GPT-2, Llama, Qwen2 or Gemma of Transformers with "
            "its unembedding (AutoModelForCausalLM)."
        )
    if check:
        check_identities(anatomy, model)
    return anatomy


@torch.no_grad()
def check_identities(anatomy: Anatomy, model: Any = None) -> dict[str, float]:
    """Relative errors of a dissection's identities, in order; ValueError at the first failure."""
    exact, V, T = _EXACT[anatomy.W_E.dtype], len(anatomy.W_E), min(_TRIED, anatomy.n_ctx)
    tokens = torch.randint(V, (2, T), generator=torch.Generator().manual_seed(0))
    errors: dict[str, float] = {}

    def meet(identity: str, found: Tensor, expected: Tensor, allowed: float = exact) -> None:
        errors[identity] = error = relative_error(found.to(expected.dtype), expected)
        if not error <= allowed:  # a NaN fails
            raise ValueError(
                f"{anatomy.name} is not what its dissection says: {identity!r} fails with "
                f"relative error {error:.1e}."
            )

    for key, tensor in _tensors(anatomy):
        if not torch.isfinite(tensor).all():
            raise ValueError(
                f"{anatomy.name} is not what its dissection says: 'the weights are finite' fails "
                f"at {key}."
            )
    whole = run(anatomy, tokens)
    if model is not None:
        expected = _logits(model, tokens)
        allowed = max(_AS_THE_MODEL.get(next(model.parameters()).dtype, 5e-2), exact)
        meet("parts = model", whole.logits, expected.to(whole.logits.dtype), allowed)
    meet("final state = sum of writers", writers(whole).writes.sum(0), whole.resid_final)
    folded = fold_norms(anatomy)
    meet("folded = unfolded", run(folded, tokens).logits, whole.logits)
    asked = tokens.roll(1, 0)  # any tokens will do
    of_asked = whole.logits.gather(-1, asked[..., None])[..., 0]
    meet("logits = sum of writers", logit_shares(folded, whole, asked).sum(0), of_asked)
    return errors


def _logits(model: nn.Module, tokens: Tensor) -> Tensor:
    """The model's own, without dropout."""
    trains = model.training
    try:
        out = model.eval()(tokens.to(next(model.parameters()).device))
    finally:
        model.train(trains)
    return getattr(out, "logits", out).cpu()


def _tensors(anatomy: Anatomy) -> list[tuple[str, Tensor]]:
    holders = {"": anatomy} | {f"blocks[{i}].": block for i, block in enumerate(anatomy.blocks)}
    return [
        (at + key, value)
        for at, holder in holders.items()
        for key, value in vars(holder).items()
        if isinstance(value, Tensor)
    ]


def _dissect_own(model: Any, name: str, dtype: torch.dtype) -> Anatomy:
    group = len(model.blocks[0].attn.W_Q) // len(model.blocks[0].attn.W_K)
    W_E = _copy(model.W_E, dtype)
    return Anatomy(
        name=name,
        W_E=W_E,
        blocks=tuple(_dissect_block(block, group, dtype) for block in model.blocks),
        ln_final=_dissect_norm(model.ln_final, dtype),
        W_U=W_E if model.W_U is model.W_E else _copy(model.W_U, dtype),
        b_U=W_E.new_zeros(len(W_E)),
        rotary_base=model.config.rotary_base,
        n_ctx=model.config.n_ctx,
    )


def _dissect_norm(norm: Any, dtype: torch.dtype) -> Normalisation:
    gamma, centred = _copy(norm.w, dtype), hasattr(norm, "b")
    beta = _copy(norm.b, dtype) if centred else torch.zeros_like(gamma)
    return Normalisation(gamma, beta, float(norm.eps), centred)


def _dissect_block(block: Any, group: int, dtype: torch.dtype) -> BlockAnatomy:
    H, D, K = block.attn.W_Q.shape
    F_ = len(block.mlp.W_out)
    gated = hasattr(block.mlp, "W_gate")

    def of_network(name: str, *shape: int) -> Tensor:
        """A tensor of the network, or zeros where it has none."""
        tensor = getattr(block.mlp, name, None)
        return torch.zeros(shape, dtype=dtype) if tensor is None else _copy(tensor, dtype)

    W_K, W_V = (
        _copy(W, dtype).repeat_interleave(group, 0) for W in (block.attn.W_K, block.attn.W_V)
    )
    zeros = torch.zeros(H, K, dtype=dtype)
    return BlockAnatomy(
        ln1=_dissect_norm(block.ln1, dtype),
        W_Q=_copy(block.attn.W_Q, dtype), b_Q=zeros, W_K=W_K, b_K=zeros, W_V=W_V, b_V=zeros,
        W_O=_copy(block.attn.W_O, dtype), b_O=torch.zeros(D, dtype=dtype),
        ln2=_dissect_norm(block.ln2, dtype),
        W_gate=of_network("W_gate") if gated else None,
        b_gate=of_network("b_gate", F_) if gated else None,
        W_in=of_network("W_in"), b_in=of_network("b_in", F_),
        W_out=of_network("W_out"), b_out=of_network("b_out", D),
        activation="silu" if gated else "gelu",
    )  # fmt: skip


def _copy(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return parameter.detach().to("cpu", dtype, copy=True)
