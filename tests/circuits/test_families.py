"""Transformers' own GPT-2, Llama, Qwen2 and Gemma, tiny and random, against their dissections."""

import re

import pytest
import torch

from papers.circuits import check_identities, dissect, dissect_weights, relative_error, run

transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 37, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32, "attn_implementation": "eager",
}  # fmt: skip
CONFIGS = {
    "gpt2": lambda **more: transformers.GPT2Config(
        vocab_size=37, n_embd=24, n_head=3, n_layer=2, n_positions=32, **more
    ),
    "llama": lambda **more: transformers.LlamaConfig(
        **SIZES | {"attention_bias": True, "mlp_bias": True, "head_dim": 6} | more
    ),
    "qwen2": lambda **more: transformers.Qwen2Config(
        **SIZES | {"tie_word_embeddings": True} | more
    ),
    "gemma": lambda **more: transformers.GemmaConfig(**SIZES | {"head_dim": 10} | more),
}


def _model(family: str, **more):
    """Random in float64, gains and biases away from their initial values; in training mode."""
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[family](**more)).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.2 * torch.randn(p.shape, generator=generator, dtype=torch.float64)
    return model


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    return _model(request.param)


def test_the_dissection_computes_what_the_model_computes(model):
    anatomy = dissect(model, check=False)
    parts, *others = check_identities(anatomy, model).values()
    assert len(others) == 3
    assert max(others) < 1e-10
    tokens = torch.randint(37, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = model.eval()(tokens, output_hidden_states=True)
    internals = run(anatomy, tokens)
    # Its rotary angles are computed in single precision whatever the model's type.
    assert parts < 1e-5
    assert relative_error(internals.logits, expected.logits) < 1e-5
    state = internals.layers[0].resid_post
    torch.testing.assert_close(state, expected.hidden_states[1], rtol=0, atol=1e-5)


def test_configuration_and_weights_are_enough_with_and_without_a_prefix(model):
    state, config = model.state_dict(), model.config.to_dict()
    bare = {re.sub(r"^(model|transformer)\.", "", key): value for key, value in state.items()}
    tokens = torch.arange(9)[None]
    expected = run(dissect(model), tokens).logits
    for weights in (state, bare):
        assert torch.equal(run(dissect_weights(config, weights), tokens).logits, expected)


def test_older_configurations_name_the_rotary_base_and_gemma_s_activation_otherwise():
    model = _model("llama", rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    older = model.config.to_dict() | {"rope_parameters": None, "rope_theta": 500.0}
    older = dissect_weights(older, model.state_dict())
    assert older.rotary_base == dissect(model).rotary_base == 500
    gemma = _model("gemma")
    named = gemma.config.to_dict()
    named.pop("hidden_activation", None)
    for first in (named | {"hidden_act": "gelu", "hidden_activation": None}, named):
        first["hidden_act"] = "gelu"
        activation = dissect_weights(first, gemma.state_dict()).blocks[0].activation
        assert activation == "gelu_pytorch_tanh"


def test_half_precision_is_taken_apart_in_double():
    assert dissect(_model("llama").bfloat16()).W_E.dtype == torch.float64


MODELS = {family: _model(family) for family in ("llama", "gpt2")}


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("llama", {"model_type": "gemma2"},
         "'gemma2' is not covered, only gpt2, llama, qwen2, gemma"),
        ("llama", {"use_sliding_window": True}, "sliding windows"),
        ("llama", {"layer_types": ["full_attention", "sliding_attention"]}, "sliding windows"),
        ("llama", {"num_local_experts": 8}, "mixture of experts"),
        ("llama", {"hidden_act": "swish2"}, "activation function 'swish2'"),
        ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "type 'llama3'"),
        ("llama", {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
         "on 0.5 of each head"),
        ("llama", {"vocab_size": 38}, r"shape \(37, 24\)"),
        ("llama", {"num_hidden_layers": 1}, "no place for"),
        ("llama", {"num_hidden_layers": 3}, r"no 'layers\.2"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "number"),
        ("gpt2", {"scale_attn_weights": False}, "sqrt"),
    ],
)  # fmt: skip
def test_what_is_not_covered_is_refused(family, change, message):
    model = MODELS[family]
    with pytest.raises(ValueError, match=message):
        dissect_weights(model.config.to_dict() | change, model.state_dict())
