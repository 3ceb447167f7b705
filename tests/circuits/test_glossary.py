"""The glossary is computed: it must catch a wrong shape."""

import pytest

from softgeom.circuits import fold_norms, glossary


def test_only_the_shape_of_the_values_disagrees_with_the_notes(anatomy):
    table = glossary([anatomy]).set_index("symbol")
    assert list(table.index[table["agrees"] == "no"]) == ["W_{out}^l"]
    sizes = anatomy.sizes
    assert table.loc["W_{out}^l", anatomy.name] == f"{sizes['F']} x {sizes['D']}"
    assert (table.loc["beta", anatomy.name] == "-") == (not anatomy.ln_final.centred)


def test_folded_models_have_no_gain_to_list(anatomy):
    with pytest.raises(ValueError, match="are folded"):
        glossary([fold_norms(anatomy)])
