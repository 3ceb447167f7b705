"""Evidence files as a forger holds them: any byte can be changed, and what is left is written
again as the format demands (docs/certificates.md). Reads and writes without softgeom's code.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

POINTS, PROOFS, TWIN, UNDECIDED = (0, 1, 5), (2, 6), 3, 4
COLUMNS = {"kinds": "|i1", "steps": "<i8", "margins": "<f8"}
SCAN = {"classes": "<i8", "radii": "<f8"}


@dataclass
class Evidence:
    """The head and the arrays of a file; `last` sees the bytes of the members before they are
    packed, `packed` those of the file.
    """

    head: dict[str, Any]
    arrays: dict[str, Any]
    last: list[Callable[[dict[str, bytes]], Any]] = field(default_factory=list)
    packed: list[Callable[[bytes], bytes]] = field(default_factory=list)
    text: str | None = None  # of the head, instead of canonical JSON

    @classmethod
    def read(cls, content: bytes) -> Evidence:
        """What an honest file holds."""
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name].copy() for name in file.files}
        return cls(json.loads(str(arrays.pop("head"))), arrays)

    def bytes(self) -> bytes:
        """The file."""
        text = json.dumps(self.head, sort_keys=True) if self.text is None else self.text
        members = {}
        for name, values in {"head": np.array(text), **self.arrays}.items():
            with io.BytesIO() as stream:
                np.lib.format.write_array(stream, np.asarray(values), (1, 0), allow_pickle=True)
                members[f"{name}.npy"] = stream.getvalue()
        for edit in self.last:
            edit(members)
        with io.BytesIO() as stream:
            with zipfile.ZipFile(stream, "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            content = stream.getvalue()
        for change in self.packed:
            content = change(content)
        return content

    @property
    def scan(self) -> bool:
        """Whether it is about classes, not orders."""
        return bool(self.head["holds"] == "scan")

    def claims(self) -> list[dict[str, Any]]:
        """One dict a claim; an error for files whose columns do not fit."""
        arrays, head = self.arrays, self.head
        rows = {name: iter(values.tolist()) for name, values in arrays.items()}
        texts = {name: iter(head[f"exact_{name}"]) for name in ("points", "weights")}
        reasons, found = iter(head["reasons"]), []
        for n, kind in enumerate(arrays["kinds"].tolist()):
            claim = {"kinds": kind, "methods": head["methods"][n]}
            claim |= {name: arrays[name].tolist()[n] for name in COLUMNS if name != "kinds"}
            if self.scan:
                claim |= {name: arrays[name].tolist()[n] for name in SCAN}
                claim |= {"order": [[claim["classes"]]], "rest": 1}
            else:
                sizes = [next(rows["sizes"]) for _ in range(next(rows["blocks"]))]
                claim["order"] = [[next(rows["named"]) for _ in range(size)] for size in sizes]
                claim["rest"] = next(rows["rest"])
            if kind in POINTS:
                claim["point"] = next(
                    {0: rows["points32"], 1: rows["points64"]}.get(kind, texts["points"])
                )
            elif kind in PROOFS:
                size = next(rows["counts"])
                behind = [next(rows["below"]) for _ in range(size)]
                ahead = [claim["classes"] if self.scan else next(rows["above"]) for _ in behind]
                exact = next(texts["weights"]) if kind == 6 else None
                weights = exact or [next(rows["weights"]) for _ in behind]
                claim["proof"] = [list(row) for row in zip(ahead, behind, weights, strict=True)]
            elif kind == TWIN:
                claim["twin"] = next(rows["twins"])
            else:
                claim["reason"] = next(reasons)
            found.append(claim)
        return found

    def put(self, claims: list[dict[str, Any]]) -> None:
        """Write the claims over those of the file; numbers too large for their array raise."""
        d = self.arrays["points64"].shape[1]

        def of(*kinds: int) -> list[dict[str, Any]]:
            return [claim for claim in claims if claim["kinds"] in kinds]

        proofs = of(*PROOFS)
        columns = COLUMNS | (SCAN if self.scan else {"rest": "|i1"})
        arrays = {name: ([c[name] for c in claims], dtype) for name, dtype in columns.items()}
        arrays |= {
            "points32": ([c["point"] for c in of(0)], "<f4"),
            "points64": ([c["point"] for c in of(1)], "<f8"),
            "counts": ([len(c["proof"]) for c in proofs], "<i8"),
            "below": ([b for c in proofs for _, b, _ in c["proof"]], "<i8"),
            "weights": ([w for c in of(2) for *_, w in c["proof"]], "<f8"),
        }
        if self.scan:
            arrays["twins"] = [c["twin"] for c in of(TWIN)], "<i8"
        else:
            blocks = [block for c in claims for block in c["order"]]
            arrays |= {
                "blocks": ([len(c["order"]) for c in claims], "<i8"),
                "sizes": ([len(block) for block in blocks], "<i8"),
                "named": ([i for block in blocks for i in block], "<i8"),
                "above": ([a for c in proofs for a, _, _ in c["proof"]], "<i8"),
            }
        typed = {name: np.array(values, dtype) for name, (values, dtype) in arrays.items()}
        for name in ("points32", "points64"):
            typed[name] = typed[name].reshape(-1, d)
        self.arrays |= typed
        self.head |= {
            "methods": [c["methods"] for c in claims],
            "reasons": [c["reason"] for c in of(UNDECIDED)],
            "exact_points": [c["point"] for c in of(5)],
            "exact_weights": [[w for *_, w in c["proof"]] for c in of(6)],
        }
