"""How well the token just read predicts a neuron's firing, where the answer is planted."""

import torch

from softgeom.circuits import explained_by_token, share_of_detectors


def test_a_neuron_that_detects_a_token_is_explained_and_noise_is_not():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 5, (400,), generator=generator)
    noise = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    detector = (tokens == 2).double()[:, None] + 0.1 * noise[:, :1]
    half = torch.arange(400) < 200
    explained = explained_by_token(torch.cat([detector, noise], 1), tokens, half)
    assert explained[0] > 0.9
    assert explained[1:].max() < 0.1
    share, _ = share_of_detectors(torch.cat([detector, noise], 1), tokens, half, generator)
    assert share == 0.25
