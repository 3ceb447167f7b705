"""Small labelled reviews with planted sentiment words, and models trained on them."""

from __future__ import annotations

import numpy as np
import pytest
from softgeom.corpora.reviews import generated_reviews
from softgeom.hardmax import reviews as prepare


@pytest.fixture(scope="session")
def planted():
    """The generated reviews, prepared: bags, labels and vocabulary of train and test, and the planted words."""
    generated = generated_reviews(seed=0)
    lexicon = {}
    tokens = prepare.tokenise(generated.train["text"], lexicon)
    test_tokens = prepare.tokenise(generated.test["text"], lexicon)
    vocabulary, numbers = prepare.build_vocabulary(tokens, lexicon)
    return {
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
    pytest.importorskip("torch")
    from softgeom.hardmax.sentiment import Recipe, train

    recipe = Recipe(anneal_from=0.05, epochs=12, batch=64, learning_rate=0.02)
    return train(recipe, planted["bags"], planted["labels"], len(planted["vocabulary"]))
