"""The model of notebook 14 learns, and a scan takes the layer that it predicts with."""

import numpy as np
import torch

from compendium.models.bags import BagModel, Recipe, draw_windows, losses, train_bag


def test_training_lowers_the_loss_and_the_logits_are_what_the_layer_says():
    rng = np.random.default_rng(0)
    tokens = np.cumsum(rng.integers(1, 3, 3000)) % 12
    recipe = Recipe(context=2, steps=60, batch=128, learning_rate=0.05)
    model = train_bag(tokens, 12, 4, recipe, seed=0)
    windows = draw_windows(tokens, 2, 200, torch.Generator().manual_seed(1))
    untrained = BagModel(12, 4, 2, torch.Generator().manual_seed(0))
    assert losses(model, windows).mean() < 0.6 * losses(untrained, windows).mean()
    x = sum(model.E[j][windows[:, j]] for j in range(2)).detach().numpy()
    np.testing.assert_allclose(
        model.layer().logits(x), model(windows[:, :-1]).detach().numpy(), rtol=1e-4, atol=1e-4
    )
    assert model.size == 2 * 12 * 4 + 12 * 4 + 12
    student = train_bag(tokens, 12, 4, recipe, seed=2, teacher=model)
    assert losses(student, windows).mean() < 0.6 * losses(untrained, windows).mean()
