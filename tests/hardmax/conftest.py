"""Small labelled reviews with planted sentiment words, and models trained on them."""

import numpy as np
import pytest
import torch

from compendium.corpora.reviews import generated_reviews
from papers.hardmax import reviews as prepare
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, Recipe, random_start
from papers.hardmax.training import train


@pytest.fixture(scope="session")
def planted():
    """The generated reviews, prepared: bags, labels, vocabulary, and the planted words."""
    generated = generated_reviews()
    lexicon = {}
    tokens = prepare.tokenise(generated.train["text"], lexicon)
    test_tokens = prepare.tokenise(generated.test["text"], lexicon)
    vocabulary, numbers = prepare.build_vocabulary(tokens, lexicon)
    return {
        "texts": generated.train["text"],
        "bags": prepare.bag(tokens, numbers),
        "labels": prepare.check_labels(generated.train),
        "test_bags": prepare.bag(test_tokens, numbers),
        "test_labels": prepare.check_labels(generated.test),
        "vocabulary": np.array(vocabulary),
        "planted": {word for words in generated.planted.values() for word in words},
        "positive": set(generated.planted["positive"]),
    }


@pytest.fixture(scope="session")
def trained(planted):
    """A model with a random start at alpha = 1, labels only."""
    recipe = Recipe(anneal_from=0.05, epochs=12, batch=64, learning_rate=0.02)
    return train(recipe, planted["bags"], planted["labels"], len(planted["vocabulary"]))


@pytest.fixture
def tiny():
    """Six reviews of 3 to 8 distinct words out of 40, with counts."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 3, (6, 9)).astype(np.float32)
    for r in range(6):
        counts[r, 3 + r :] = 0
    return Bags(np.stack([rng.permutation(40)[:9] for _ in range(6)]).astype(np.int32), counts)


@pytest.fixture
def model_of():
    """Makes an untrained classifier over 40 words with a decoder that is not zero."""

    def make(recipe):
        model = Classifier(random_start(40, recipe), recipe)
        with torch.no_grad():
            model.w.copy_(torch.tensor([1.0, -0.5, 0.3][: recipe.dimension]))
            model.v.fill_(0.1)
        return model

    return make
