"""What a model does between its scores and its answer, as its configuration says it."""

import numpy as np
import pytest

from softgeom.checkpoints.conventions import readout_of
from softgeom.readout import Readout

CONFIGURATIONS = [
    ({"model_type": "gemma2"}, {"soft_cap": 30.0}),  # the family's own value
    ({"model_type": "gemma2", "final_logit_softcapping": 20.0}, {"soft_cap": 20.0}),
    ({"model_type": "gemma2", "final_logit_softcapping": None}, {}),
    ({"text_config": {"model_type": "gemma3_text", "final_logit_softcapping": 5.0}},
     {"soft_cap": 5.0}),
    ({"model_type": "gemma2", "architectures": ["Gemma2ForSequenceClassification"]}, {}),
    ({"model_type": "granite", "logits_scaling": 8.0}, {"scale": 0.125}),
    ({"model_type": "granite", "logit_scale": 8.0}, {"scale": 0.125}),  # as GGUF names it
    ({"model_type": "hyperclovax", "logits_scaling": 0.25}, {"scale": 0.25}),
    ({"model_type": "cohere"}, {"scale": 0.0625}),
    ({"model_type": "command-r", "logit_scale": 0.5}, {"scale": 0.5}),
    ({"model_type": "falcon_h1", "lm_head_multiplier": 0.25}, {"scale": 0.25}),
    ({"model_type": "recurrent_gemma"}, {"soft_cap": 30.0}),
    ({"model_type": "muse_spark", "output_multiplier": 0.5}, {"scale": 0.5, "soft_cap": 20.0}),
    ({"model_type": "minicpm", "hidden_size": 512, "dim_model_base": 256}, {"feature_scale": 0.5}),
    ({"model_type": "t5", "d_model": 4, "tie_word_embeddings": True}, {"feature_scale": 0.5}),
    ({"model_type": "t5", "d_model": 4}, {"feature_scale": 0.5}),
    ({"model_type": "t5", "d_model": 4, "tie_word_embeddings": False}, {}),
    ({"model_type": "t5", "d_model": 4, "scale_decoder_outputs": False}, {}),
    ({"model_type": "bart", "d_model": 4}, {}),
    ({"model_type": "llama", "logit_scale": 1.0}, {}),
    ({"problem_type": "multi_label_classification"},
     {"rule": "threshold", "probability": "sigmoid"}),
    ({}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), CONFIGURATIONS)
def test_a_configuration_is_read(config, expected):
    assert readout_of(config) == Readout(**expected)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "mpt", "logit_scale": "inv_sqrt_d_model"},
        {"model_type": "someone's", "logits_scaling": 4.0},
        {"model_type": "gemma2", "final_logit_softcapping": "yes"},
        {"model_type": "minicpm", "dim_model_base": 256},
        {"problem_type": "regression"},
    ],
)
def test_what_cannot_be_accounted_for_is_said(config):
    found = readout_of(config)
    assert len(found.caveats) == 1
    said = "no probability" if found.probability == "none" else "not of the model's output"
    assert said in found.sentence()


@pytest.mark.parametrize("numbers", [{"scale": -1.0}, {"soft_cap": 0.0}, {"feature_scale": np.inf}])
def test_a_scale_that_reverses_the_order_is_refused(numbers):
    with pytest.raises(ValueError, match="must be positive"):
        Readout(**numbers)


def test_probabilities_are_those_of_the_formulas():
    z = np.array([1.0, -2.0, 0.5])
    y = 2 * np.tanh(0.5 * z / 2)
    s = 1 / (1 + np.exp(-y))
    how = {"scale": 0.5, "soft_cap": 2.0}
    assert np.allclose(Readout(**how).probabilities(z), np.exp(y) / np.exp(y).sum())
    assert np.allclose(Readout(probability="sigmoid", **how).probabilities(z), s)
    shared = Readout(probability="normalised sigmoids", **how).probabilities(z)
    assert np.allclose(shared, s / s.sum())
