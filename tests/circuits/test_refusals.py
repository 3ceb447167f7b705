"""Models, tokens and factors that make no sense are refused in one sentence."""

from dataclasses import replace

import pytest
import torch

from papers import language_model as lm
from papers.circuits import (
    FactoredMatrix,
    Ledger,
    centre_writers,
    check_identities,
    copying_scores,
    dissect,
    effects_along_paths,
    find_triggers,
    fold_norms,
    glossary,
    head_scores,
    logit_shares,
    promotion,
    relative_error,
    repeated_tokens,
    run,
)

MODEL = lm.GPT(lm.GPTConfig(d_vocab=31, d_model=12, n_heads=3, n_ctx=16)).double()
GPT, LLAMA = dissect(MODEL), dissect(lm.Llama(lm.LlamaConfig(5, 4, 2, 1, 1, 3, 4)))
FOLDED, READ = fold_norms(GPT), torch.zeros(1, 9, dtype=torch.long)
LEDGER = Ledger()
LEDGER.note("a = b", "GPT", torch.ones(1), torch.ones(1))


class Capped(type(GPT.ln_final)):
    """A norm with a soft cap: no matrix behind it can absorb that."""

    def __call__(self, z):
        return torch.tanh(super().__call__(z))


def with_nan():
    W_O = GPT.blocks[1].W_O.clone()
    W_O[0, 0, 0] = torch.nan
    return replace(GPT, blocks=(GPT.blocks[0], replace(GPT.blocks[1], W_O=W_O)))


def path(receiver, side):
    return effects_along_paths(GPT, READ, None, receiver, side, lambda x: x[:, -1, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dissect(torch.nn.Linear(2, 2)), "Linear is not a decoder"),
        (lambda: dissect(MODEL, dtype=torch.bfloat16), r"take torch\.float64"),
        (lambda: check_identities(replace(GPT, W_U=GPT.W_U * 1.001), MODEL), "'parts = model'"),
        (lambda: check_identities(with_nan()), r"weights are finite' fails at blocks\[1\]\.W_O"),
        (lambda: check_identities(replace(GPT, ln_final=Capped(**vars(GPT.ln_final)))),
         "'folded = unfolded' fails"),
        (lambda: run(GPT, torch.tensor([[0, -1]])), "outside the vocabulary"),
        (lambda: run(GPT, torch.tensor([[0, 31]])), "outside the vocabulary"),
        (lambda: run(GPT, torch.zeros(1, 17).long()), "from 1 to 16"),
        (lambda: run(GPT, torch.zeros(4).long()), "do not fit"),
        (lambda: fold_norms(FOLDED), "folded already"),
        (lambda: glossary([FOLDED]), "are folded"),
        (lambda: centre_writers(LLAMA), "RMSNorm, which reads the mean"),
        (lambda: copying_scores(GPT), "use fold_norms first"),
        (lambda: promotion(GPT, None, None), "use fold_norms first"),
        (lambda: logit_shares(GPT, None), "use fold_norms first"),
        (lambda: repeated_tokens(31, 3, 40, torch.Generator()), "40 different tokens"),
        (lambda: head_scores(GPT, torch.arange(11)[None], 5), "not a text of 5 and its repetition"),
        (lambda: find_triggers(GPT, READ, 10), "9 positions cannot hold 10 triggers"),
        (lambda: path((1, 0), "gate"), "no side 'gate'"),
        (lambda: path((0, 0), "keys"), "no sender"),
        (lambda: FactoredMatrix(torch.ones(6, 2), torch.ones(6, 2)), "is a transpose missing"),
        (lambda: FactoredMatrix(torch.ones(6, 2), torch.ones(2, 5)).eigenvalues(),
         "no eigenvalues"),
        (lambda: relative_error(torch.ones(1, 2), torch.ones(2)), "cannot be compared"),
        (lambda: LEDGER.worst("e = f"), "never tested: e = f"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(call, message):
    with pytest.raises((ValueError, KeyError), match=message):
        call()
