"""The model of notebook 14 learns, and a scan takes the layer that it predicts with."""

import numpy as np
import torch

from compendium.models.bags import (
    BagModel,
    Recipe,
    StateModel,
    draw_windows,
    losses,
    train_bag,
    train_head,
)


def test_training_lowers_the_loss_and_the_logits_are_what_the_layer_says():
    rng = np.random.default_rng(0)
    tokens = np.cumsum(rng.integers(1, 3, 3000)) % 12
    recipe = Recipe(context=2, steps=60, batch=128, learning_rate=0.05)
    model = train_bag(tokens, 12, 4, recipe, seed=0)
    windows = draw_windows(tokens, 2, 200, torch.Generator().manual_seed(1))
    asked = windows[:, :-1], windows[:, -1]
    untrained = BagModel(12, 4, 2, torch.Generator().manual_seed(0))
    assert losses(model, asked).mean() < 0.6 * losses(untrained, asked).mean()
    x = sum(model.E[j][windows[:, j]] for j in range(2)).detach().numpy()
    np.testing.assert_allclose(
        model.layer().logits(x), model(windows[:, :-1]).detach().numpy(), rtol=1e-4, atol=1e-4
    )
    assert model.size == 2 * 12 * 4 + 12 * 4 + 12
    student = train_bag(tokens, 12, 4, recipe, seed=2, teacher=model)
    assert losses(student, asked).mean() < 0.6 * losses(untrained, asked).mean()


def test_a_layer_on_frozen_states_learns_what_follows_and_leaves_them_as_they_are():
    generator = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(12, 30, generator=generator)
    following = torch.randint(12, (3000,), generator=generator)
    states = centres[following] + torch.randn(3000, 30, generator=generator)
    before, train, new = states.clone(), slice(2500), slice(2500, None)
    recipe = Recipe(context=0, steps=150, batch=128, learning_rate=0.05)
    model = train_head((states[train], following[train]), 12, 4, recipe, seed=0)
    untrained = StateModel(12, 4, 30, torch.Generator().manual_seed(0))
    asked = states[new], following[new]
    assert losses(model, asked).mean() < 0.2 * losses(untrained, asked).mean()
    assert torch.equal(states, before)  # they are not trained
    x = (states[new] @ model.P.T).detach().numpy()
    np.testing.assert_allclose(
        model.layer().logits(x), model(states[new]).detach().numpy(), rtol=1e-4, atol=1e-4
    )
    assert model.size == 4 * 30 + 12 * 4 + 12
    student = train_head((states[train], following[train]), 12, 4, recipe, 2, teacher=model)
    assert losses(student, asked).mean() < 0.2 * losses(untrained, asked).mean()
