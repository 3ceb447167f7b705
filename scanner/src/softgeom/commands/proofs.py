"""``softgeom verify``, ``explain`` and ``diff``: what stored or fresh proofs say."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Unpack

from softgeom import comparing, explaining
from softgeom.asking import Router
from softgeom.ceiling import Ceilings
from softgeom.certifying.folder import BLOCKS, EVIDENCE, Report
from softgeom.commands.ask import listed
from softgeom.commands.boundary import DONE, TOO_MANY, UNDECIDED
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.options import LayerOptions, Options, loaded
from softgeom.results import ANSWERS, CEILINGS, LAYER
from softgeom.verdict_table import escape_token
from softgeom.verifying import Found, verified
from softgeom.writing import LOCK

_SHOWN = 40  # tokens of a kind of change


def verify(folder: Path, model: str, **options: Unpack[LayerOptions]) -> int:
    """Prove everything in the folder again; the first class or order that fails is named."""
    layer = loaded(model, **options).layer
    checked = verified(folder, layer)
    for found in checked:
        print("\n".join(_lines(found, layer)))
    proofs = {EVIDENCE, ANSWERS, CEILINGS, LAYER, BLOCKS, LOCK}
    beside = folder.iterdir() if folder.is_dir() else ()
    if others := sorted(path.name for path in beside if path.name not in proofs):
        print(f"not checked: {', '.join(map(escape_token, others))}")
    undecided = any(
        not isinstance(found, Ceilings) and found.counts["undecided"] for found in checked
    )
    return UNDECIDED if undecided else DONE


def _lines(found: Found, layer: SoftmaxLayer) -> list[str]:
    """About which layer and which features, and what is proven."""
    if isinstance(found, Ceilings):
        return [
            _about(fingerprint(layer), found.features.describe(), found.features.digest()),
            f"{len(found):,} ceilings of probability re-checked without a solver"
            + _share(len(found), layer.classes),
        ]
    proven = sum(found.counts.values()) - found.counts["undecided"]
    if not isinstance(found, Report):
        about = f"experts in the top {found.k}" if isinstance(found, Router) else "orders"
        if isinstance(found, Router) and found.blank is not None:
            about += f" of all but the blank, class {found.blank}"
        key = fingerprint(found.layer)
        share = _share(len(found.experts), layer.classes) if isinstance(found, Router) else ""
        return [
            _about(key, found.features.describe(), found.features.digest()) + f"; {about}",
            f"{proven:,} answers re-checked without a solver{share}: {listed(found.counts)}",
        ]
    share = _share(found.scanned, found.classes)
    return [
        _about(found.fingerprint, found.features, found.features_digest),
        f"{proven:,} verdicts re-checked without a solver{share}: {listed(found.counts)}",
        *(
            f"{count:,} of them unargmaxable {condition}, re-checked too"
            for condition, count in found.wider.items()
        ),
    ]


def _share(looked_at: int, classes: int) -> str:
    return "" if looked_at == classes else f" of a layer of {classes:,} classes"


def _about(key: str, features: str, digest: str) -> str:
    return f"layer {key}; {features}, SHA-256 {digest}"


def explain(model: str, class_: str, **options: Unpack[Options]) -> int:
    """Decide one class and print what its evidence says."""
    print(explaining.explain(model, class_, **options))
    return DONE


def diff(a: Path, b: Path, *, exit_code: bool = False, json: bool = False) -> int:
    """Compare two tables of verdicts; with ``exit_code`` 4 where anything changed."""
    changes = comparing.diff(a, b)
    if json:
        print(dumps(changes, ensure_ascii=True))
    else:
        for what, tokens in changes.items():
            shown = " ".join(escape_token(token) for token in tokens[:_SHOWN])
            shown += " ..." if len(tokens) > _SHOWN else ""
            print(f"{what}: {len(tokens):,}{f'  {shown}' if tokens else ''}")
    changed = any(tokens for what, tokens in changes.items() if what != "lost in both")
    return TOO_MANY if exit_code and changed else DONE
