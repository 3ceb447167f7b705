import pytest
import torch

from softgeom.circuits import Ledger


def test_ledger_keeps_the_largest_error_and_refuses_what_was_never_tested():
    ledger, one = Ledger(), torch.ones(2)
    ledger.note("a = b", "GPT", one, one)
    ledger.note("a = b", "GPT", 1.5 * one, one)
    ledger.note("a = b", "GPT", one, one)
    ledger.note("c = d", "Llama", one, one)
    assert ledger.worst("a = b") == ledger.worst() == 0.5
    assert ledger.worst("c = d") == 0
    table = ledger.table().set_index("identity")
    assert table.loc["a = b", "GPT"] == 0.5
    assert table.loc["c = d", "GPT"] != table.loc["c = d", "GPT"]  # NaN: not tested there
    with pytest.raises(KeyError, match="never tested: e = f"):
        ledger.worst("e = f")
