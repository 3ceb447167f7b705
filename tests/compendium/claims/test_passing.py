import json

import pytest

from compendium import claims

GOOD = 'book.claim("003-figure-1", gain=g, low=1, high=2, scale=3)'


@pytest.fixture
def check(entry, write, tmp_path):
    register, _ = claims.read(write(entry))

    def _check(*cells, name="24_robustness"):
        path = tmp_path / f"{name}.ipynb"
        code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
        written = [{"cell_type": "markdown", "source": ["book.claim(3"]}, *code]
        path.write_text(json.dumps({"cells": written}), encoding="utf-8")
        return claims.check(register, [path])

    return _check


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (GOOD.replace("gain", "gian"), "003-figure-1 has no evidence gian; its rule takes gain"),
        (GOOD.replace("gain", "gian"), "003-figure-1 also needs the evidence gain"),
        (GOOD.replace(", scale=3", ""), "cell 2: 003-figure-1 also needs the evidence scale"),
        ('book.claim("003-figure-2", gain=1)', "cell 2: the register has no claim '003-figure-2'"),
        ("pass", "003-figure-1: 24_robustness never passes its evidence"),
        (GOOD.replace(", scale=3", ", gian=3, **rest"), "has no evidence gian"),
    ],
)
def test_a_call_that_does_not_fit_is_one_sentence(check, cell, message):
    assert any(message in fault for fault in check(cell)[0]), check(cell)


def test_a_claim_belongs_to_one_notebook(check):
    fault = check(GOOD, name="23_margin_sweep")[0][0]
    assert "the register says that 24_robustness passes" in fault


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('book.claim("003-figure-1", **evidence)', "003-figure-1 is known only at run time"),
        ("book.claim(name, **evidence)", "a claim whose id is known only at run time"),
    ],
)
def test_what_is_known_only_at_run_time_is_reported(check, cell, said):
    assert check(cell) == ([], [f"24_robustness, cell 2: {said}"])
