"""The paper's models by name, and its filter of tokens by script."""

import pandas as pd
import pytest

from compendium import parameters, paths
from papers.bottleneck.survey import in_language, models_of_row, on_hub, target_language


def test_the_parameters_name_the_150_models_of_the_printed_tables():
    printed = pd.read_csv(paths.root() / "data" / "reference" / "unargmaxable_model_scans.csv")
    names = [
        name
        for source, row in printed[["source", "model"]].itertuples(index=False)
        for name in models_of_row(source, row)
    ]
    assert len(set(names)) == len(names) == 150
    for profile in ("smoke", "default", "paper"):
        assert parameters.read("16_model_survey", profile)["paper_models"] == names


def test_a_row_is_its_models_and_only_released_ones_have_an_address():
    assert models_of_row("edinburgh-wmt17", "zh-en.r2l(1-3)") == [
        f"edinburgh-wmt17/zh-en.r2l({n})" for n in (1, 2, 3)
    ]
    assert models_of_row("fair-wmt19", "facebook/wmt19-en-ru") == ["facebook/wmt19-en-ru"]
    assert on_hub("Helsinki-NLP/opus-mt-ru-en")
    assert not on_hub("Helsinki-NLP/opus-mt-ja-en(2)")
    assert not on_hub("bergamot/cs-en.student.base")
    assert target_language("Helsinki-NLP/opus-mt-ja-en(2)") == "en"
    assert target_language("facebook/wmt19-en-ru") is None


def test_the_filter_keeps_the_tokens_of_the_target_language():
    tokens = ["▁erecti", "Предварительны", "<unk>", "a1", "b.", "▁", "日本", "кa", "ا", "Ω", "한"]
    kept = {
        language: [t for t, keep in zip(tokens, in_language(tokens, language), strict=True) if keep]
        for language in ("en", "ru", "ja", "ar", "el", "ko")
    }
    assert kept == {
        "en": ["▁erecti", "<unk>"],
        "ru": ["Предварительны", "<unk>"],
        "ja": ["<unk>", "日本"],
        "ar": ["<unk>", "ا"],
        "el": ["<unk>", "Ω"],
        "ko": ["<unk>", "한"],
    }
    with pytest.raises(ValueError, match="no script is listed for the language 'de'"):
        in_language(tokens, "de")
