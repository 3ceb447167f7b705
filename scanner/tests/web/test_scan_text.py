"""The page's box for a text answers as the library does."""

from contextlib import nullcontext

import numpy as np
import pytest

import softgeom as sg

NAMES = [*"aée\u0301\u212b", "🇩🇪", " ", "<blank>", "Ğ", "n\u0303", *"n한ㅎxx"]
WORDS = {"fine": "argmaxable", "can never win": "unargmaxable", "tied": "tied"}
WORDS |= {"missing from the list": "missing"}
SIGNS = list("aéeE\u0301\u0306\u00c5\u212b🇩🇪🇫 <Ğgñn한\u1112\u1161x\n\r\t\ufeff\u200d\ufe0f中😀")
BODY = (
    "const cover = m.coverage(argument.names, argument.verdicts); return argument.texts.map(cover);"
)


@pytest.fixture(scope="module")
def layer() -> sg.SoftmaxLayer:
    W = np.random.default_rng(0).standard_normal((len(NAMES), 3)) * 0.3
    W[: len(NAMES) // 2] *= 10  # the others are inside, mostly
    W[10] = W[12]
    return sg.SoftmaxLayer(W, tokens=NAMES)


def test_a_text_is_judged_as_the_library_judges_it(javascript, layer):
    rng = np.random.default_rng(1)
    texts = ["", "\n", *("".join(rng.choice(SIGNS, rng.integers(60))) for _ in range(80))]
    verdicts = sg.scan(layer).table["verdict"].tolist()
    assert {"argmaxable", "unargmaxable", "tied"} <= set(verdicts)
    page = javascript("scan_text", BODY, {"names": NAMES, "verdicts": verdicts, "texts": texts})
    for text, told in zip(texts, page, strict=True):
        if not told["characters"]:
            with pytest.raises(ValueError, match="the text is empty"):
                sg.coverage(layer, text)
            continue
        found = sg.coverage(layer, text)
        ours = [
            (c.text, c.count, WORDS[c.status], list(c.classes), c.form) for c in found.characters
        ]
        assert [tuple(row.values()) for row in told["characters"]] == ours
        assert told["passedOver"] == sum(found.passed_over.values())


@pytest.mark.parametrize(
    ("names", "fit"),
    [(NAMES, True), (["cat", "dog"], False), (["##a", "a", "b"], False), (["<s>", "<b>"], False)],
)
def test_the_box_is_there_for_lists_of_characters_alone(javascript, names, fit):
    assert javascript("scan_text", "return m.areCharacters(argument);", names) is fit
    W = np.random.default_rng(0).standard_normal((len(names), 3))
    with nullcontext() if fit else pytest.raises(ValueError, match="only its own tokenizer"):
        sg.coverage(W, "a", tokens=names)
