"""Decoders of Transformers taken apart from their configuration and their state dict: GPT-2, Llama,
Qwen2, Gemma 1.

Nothing of a model runs and Transformers need not be installed. The four families are one block with
other parts:

    GPT-2     LayerNorm, learned positions, biases everywhere (also b_O), two-matrix network with
              the tanh form of GELU, matrices stored as x W and queries, keys, values side by side
              in one of them;
    Llama     RMSNorm, rotary positions, heads that share keys, gated network;
    Qwen2     the same with biases of queries, keys and values;
    Gemma 1   the same without, with gains stored as 1 + w, embeddings multiplied by sqrt(D), gates
              through GELU.

Their rotary positions turn coordinate p with p + K/2, ours adjacent ones, so the columns of W_Q and
W_K are reordered. Every tensor of the state dict must have found its place, so that a variant with
a part more is refused, not cut.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from papers.circuits.anatomy import ACTIVATIONS, Anatomy, BlockAnatomy
from papers.circuits.layernorm import Normalisation

# constants that old files store with the weights
_BUFFERS = (".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq")


def dissect_weights(
    config: Mapping[str, Any] | Any,
    state: Mapping[str, Tensor],
    name: str = "",
    dtype: torch.dtype = torch.float64,
) -> Anatomy:
    """The anatomy of a Transformers decoder of one of the four families from its configuration and
    its state dict, whose names may begin with `model.` or `transformer.`; no identity is tried yet.
    ValueError when the family or a variant of it is not covered (sliding windows, experts, scaled
    rotary positions), a tensor is missing or has another shape, or one is left over.
    """
    facts = dict(config if isinstance(config, Mapping) else config.to_dict())
    family = str(facts.get("model_type", "unnamed"))
    if family not in _FAMILIES:
        known = ", ".join(_FAMILIES)
        raise ValueError(
            f"a model of type {family!r} is not covered, only {known}: their blocks are pre-norm, "
            "attention then network, and every head sees all of the past."
        )
    _refuse_variants(facts, family)
    weights = _Weights(state, family, dtype)
    anatomy = _FAMILIES[family](facts, weights, name or family)
    weights.finish()
    return anatomy


class _Weights:
    """A state dict that converts what is asked for and remembers what was."""

    def __init__(self, state: Mapping[str, Tensor], family: str, dtype: torch.dtype):
        self._tensors = {key: key for key in state}
        for prefix in ("transformer.", "model."):
            self._tensors |= {k.removeprefix(prefix): k for k in state if k.startswith(prefix)}
        self._state, self._family, self._dtype = state, family, dtype
        self._left = {key for key in state if not key.endswith(_BUFFERS)}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __call__(self, name: str, *shape: int) -> Tensor:
        """One tensor, checked."""
        if name not in self._tensors:
            raise ValueError(
                f"the state dict has no {name!r}, which a model of type {self._family!r} needs."
            )
        key = self._tensors[name]
        self._left.discard(key)
        tensor = self._state[key].detach()
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"{key} has the shape {tuple(tensor.shape)}; its configuration asks for {shape}."
            )
        return tensor.to("cpu", self._dtype, copy=True)

    def bias(self, name: str, *shape: int) -> Tensor:
        """A bias, or zeros where the model has none."""
        return self(name, *shape) if name in self else torch.zeros(shape, dtype=self._dtype)

    def finish(self) -> None:
        """Refuse tensors that have found no place."""
        if self._left:
            shown = ", ".join(sorted(self._left)[:3])
            raise ValueError(
                f"a model of type {self._family!r} has no place for {len(self._left)} tensor(s) of "
                f"this state dict ({shown}): it is a variant that is not covered."
            )


def _gpt2(facts: Mapping[str, Any], weights: _Weights, name: str) -> Anatomy:
    V, D, H, L, T = _ints(facts, "vocab_size n_embd n_head n_layer n_positions")
    F_, K = int(facts.get("n_inner") or 4 * D), D // H
    eps = float(facts.get("layer_norm_epsilon", 1e-5))
    W_E = weights("wte.weight", V, D)

    def norm(where: str) -> Normalisation:
        return Normalisation(
            weights(f"{where}.weight", D), weights(f"{where}.bias", D), eps, centred=True
        )

    def block(at: str) -> BlockAnatomy:
        stacked = weights(f"{at}.attn.c_attn.weight", D, 3 * D).split(D, dim=1)
        W_Q, W_K, W_V = (W.view(D, H, K).transpose(0, 1).contiguous() for W in stacked)
        b_Q, b_K, b_V = weights(f"{at}.attn.c_attn.bias", 3 * D).view(3, H, K)
        return BlockAnatomy(
            ln1=norm(f"{at}.ln_1"), W_Q=W_Q, b_Q=b_Q, W_K=W_K, b_K=b_K, W_V=W_V, b_V=b_V,
            W_O=weights(f"{at}.attn.c_proj.weight", D, D).view(H, K, D),
            b_O=weights(f"{at}.attn.c_proj.bias", D),
            ln2=norm(f"{at}.ln_2"), W_gate=None, b_gate=None,
            W_in=weights(f"{at}.mlp.c_fc.weight", D, F_), b_in=weights(f"{at}.mlp.c_fc.bias", F_),
            W_out=weights(f"{at}.mlp.c_proj.weight", F_, D),
            b_out=weights(f"{at}.mlp.c_proj.bias", D),
            activation=_activation(facts.get("activation_function", "gelu_new")),
        )  # fmt: skip

    return Anatomy(
        name=name, W_E=W_E, blocks=tuple(block(f"h.{i}") for i in range(L)), ln_final=norm("ln_f"),
        W_U=weights("lm_head.weight", V, D) if "lm_head.weight" in weights else W_E.clone(),
        b_U=W_E.new_zeros(V), rotary_base=None, n_ctx=T,
        W_pos=weights("wpe.weight", T, D),
    )  # fmt: skip


def _llama(facts: Mapping[str, Any], weights: _Weights, name: str) -> Anatomy:
    return _gated(facts, weights, name, _activation(facts.get("hidden_act", "silu")))


def _gemma(facts: Mapping[str, Any], weights: _Weights, name: str) -> Anatomy:
    # The first files say hidden_act "gelu"; the models were trained with the tanh form, and
    # Transformers reads that name so. Later files name the form in hidden_activation.
    named = facts.get("hidden_activation") or facts.get("hidden_act") or "gelu"
    activation = "gelu_pytorch_tanh" if named == "gelu" else _activation(named)
    stretch = math.sqrt(float(facts["hidden_size"]))
    return _gated(facts, weights, name, activation, offset=1.0, stretch=stretch)


def _gated(
    facts: Mapping[str, Any], weights: _Weights, name: str, activation: str,
    *, offset: float = 0.0, stretch: float = 1.0,
) -> Anatomy:  # fmt: skip
    """RMSNorms of gain offset + w, rotary heads that share keys, gated network."""
    V, D, H, L, F_ = _ints(
        facts, "vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size"
    )
    G, K = int(facts.get("num_key_value_heads") or H), int(facts.get("head_dim") or D // H)
    eps = float(facts.get("rms_norm_eps", 1e-6))
    # p, p + K/2, p + 1, ...: partners become neighbours
    halves = torch.arange(K).view(2, K // 2).T.flatten()

    def norm(where: str) -> Normalisation:
        gain = weights(f"{where}.weight", D) + offset
        return Normalisation(gain, torch.zeros_like(gain), eps, centred=False)

    def heads(where: str, count: int, turned: bool) -> tuple[Tensor, Tensor]:
        # (heads, D, K)
        W = weights(f"{where}.weight", count * K, D).view(count, K, D).transpose(1, 2)
        b = weights.bias(f"{where}.bias", count * K).view(count, K)
        if turned:
            W, b = W[..., halves], b[..., halves]
        return W.repeat_interleave(H // count, 0).contiguous(), b.repeat_interleave(H // count, 0)

    def block(at: str) -> BlockAnatomy:
        (W_Q, b_Q), (W_K, b_K), (W_V, b_V) = (
            heads(f"{at}.self_attn.{part}_proj", count, part != "v")
            for part, count in (("q", H), ("k", G), ("v", G))
        )
        return BlockAnatomy(
            ln1=norm(f"{at}.input_layernorm"), W_Q=W_Q, b_Q=b_Q, W_K=W_K, b_K=b_K, W_V=W_V, b_V=b_V,
            W_O=weights(f"{at}.self_attn.o_proj.weight", D, H * K).T.reshape(H, K, D),
            b_O=weights.bias(f"{at}.self_attn.o_proj.bias", D),
            ln2=norm(f"{at}.post_attention_layernorm"),
            W_gate=weights(f"{at}.mlp.gate_proj.weight", F_, D).T.contiguous(),
            b_gate=weights.bias(f"{at}.mlp.gate_proj.bias", F_),
            W_in=weights(f"{at}.mlp.up_proj.weight", F_, D).T.contiguous(),
            b_in=weights.bias(f"{at}.mlp.up_proj.bias", F_),
            W_out=weights(f"{at}.mlp.down_proj.weight", D, F_).T.contiguous(),
            b_out=weights.bias(f"{at}.mlp.down_proj.bias", D),
            activation=activation,
        )  # fmt: skip

    W_E = weights("embed_tokens.weight", V, D)
    W_U = weights("lm_head.weight", V, D) if "lm_head.weight" in weights else W_E
    return Anatomy(
        name=name, W_E=W_E * stretch if stretch != 1 else W_E,
        blocks=tuple(block(f"layers.{i}") for i in range(L)),
        ln_final=norm("norm"), W_U=W_U, b_U=W_E.new_zeros(V), rotary_base=_rotary_base(facts),
        n_ctx=int(facts["max_position_embeddings"]),
    )  # fmt: skip


_FAMILIES: dict[str, Callable[[Mapping[str, Any], _Weights, str], Anatomy]]
_FAMILIES = {"gpt2": _gpt2, "llama": _llama, "qwen2": _llama, "gemma": _gemma}


def _ints(facts: Mapping[str, Any], names: str) -> tuple[int, ...]:
    return tuple(int(facts[name]) for name in names.split())


def _activation(named: Any) -> str:
    if named not in ACTIVATIONS:
        raise ValueError(
            f"the activation function {named!r} is not covered, only {', '.join(ACTIVATIONS)}."
        )
    return str(named)


def _rotary_base(facts: Mapping[str, Any]) -> float:
    """The base, from a new configuration's `rope_parameters` or an old one's `rope_theta`."""
    rope = facts.get("rope_parameters") or facts.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    part = rope.get("partial_rotary_factor") or facts.get("partial_rotary_factor") or 1.0
    if kind != "default" or float(part) != 1.0:
        changed = f"of type {kind!r}" if kind != "default" else f"on {float(part):g} of each head"
        raise ValueError(
            f"rotary positions {changed} are not covered: every pair of coordinates must "
            "turn by the plain angles."
        )
    return float(rope.get("rope_theta") or facts.get("rope_theta") or 10_000.0)


def _refuse_variants(facts: Mapping[str, Any], family: str) -> None:
    if facts.get("use_sliding_window") or "sliding_attention" in (facts.get("layer_types") or ()):
        raise ValueError(
            f"this {family!r} attends through sliding windows, which are not covered: every "
            "head must see all of the past."
        )
    odd = {
        "num_experts": "a mixture of experts",
        "num_local_experts": "a mixture of experts",
        "n_routed_experts": "a mixture of experts",
        "add_cross_attention": "attention to another sequence",
        "scale_attn_by_inverse_layer_idx": "scores divided by the layer's number",
        "use_bidirectional_attention": "attention to what follows",
    }
    if key := next((key for key in odd if facts.get(key)), None):
        raise ValueError(
            f"this {family!r} has {odd[key]} ({key} = {facts[key]}), which is not covered."
        )
    if not facts.get("scale_attn_weights", True):
        raise ValueError(
            f"this {family!r} does not divide its scores by sqrt(K), which is not covered."
        )
