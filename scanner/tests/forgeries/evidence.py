"""Files of proofs as a forger holds them: any number can be changed, and what is left is written
again as the format demands (docs/certificates.md). Reads and writes without softgeom's code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

POINTS, PROOFS, TWIN, UNDECIDED, ODDS = (0, 1, 5), (2, 6), 3, 4, 7
CODES = {"<f8": "F64", "<i8": "I64", "<f4": "F32", "|i1": "I8", "|u1": "U8"}

DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I8": "|i1", "U8": "|u1"}
LISTS = ("fractions", "methods", "reasons", "tokens")
COLUMNS = {"sets": "<i8", "rest": "|i1", "kinds": "|i1", "steps": "<i8"}
COLUMNS |= {"margins": "<f8", "radii": "<f8"}


@dataclass
class Evidence:
    """Texts, feature sets, arrays and lists of texts; ``header`` sees what the header says before
    it is written, ``packed`` the bytes of the file.
    """

    texts: dict[str, Any]
    sets: Any
    arrays: dict[str, Any]
    lists: dict[str, Any]
    header: list[Callable[[dict[str, Any]], Any]] = field(default_factory=list)
    packed: list[Callable[[bytes], bytes]] = field(default_factory=list)

    @classmethod
    def read(cls, content: bytes) -> Evidence:
        """What an honest file holds."""
        length = int.from_bytes(content[:8], "little")
        header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
        texts, arrays = header.pop("__metadata__"), {}
        for name, said in header.items():
            start, end = said["data_offsets"]
            values = np.frombuffer(body[start:end], DTYPES[said["dtype"]])
            arrays[name] = values.reshape(said["shape"]).copy()
        lists = {name: json.loads(arrays.pop(name).tobytes()) for name in LISTS}
        return cls(texts, json.loads(texts.pop("features")), arrays, lists)

    def bytes(self) -> bytes:
        """The file."""
        arrays = dict(self.arrays)
        for name, texts in self.lists.items():
            written = texts if isinstance(texts, bytes) else json.dumps(texts).encode()
            arrays[name] = np.frombuffer(written, np.uint8)
        sets = json.dumps(self.sets, sort_keys=True)
        said: dict[str, Any] = {"__metadata__": {"features": sets} | self.texts}
        place, body = 0, b""
        for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
            content = np.ascontiguousarray(arrays[name]).tobytes()
            said[name] = {"dtype": CODES[arrays[name].dtype.str], "shape": [*arrays[name].shape]}
            said[name]["data_offsets"] = [place, place + len(content)]
            place, body = place + len(content), body + content
        for edit in self.header:
            edit(said)
        text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        found = framed(text) + body
        for change in self.packed:
            found = change(found)
        return found

    @property
    def holds(self) -> str:
        """scan, answers, experts or ceilings."""
        return str(self.texts["holds"])

    def claims(self) -> list[dict[str, Any]]:
        """One dict a claim; an error for files whose columns do not fit."""
        rows = {name: iter(values.tolist()) for name, values in self.arrays.items()}
        texts = {name: iter(values) for name, values in self.lists.items()}
        wide, found = self.arrays["points64"].tolist(), []
        d = self.arrays["points64"].shape[1]
        for _ in range(len(self.arrays["kinds"])):
            claim = {name: next(rows[name]) for name in COLUMNS}
            claim["methods"], kind = next(texts["methods"]), claim["kinds"]
            sizes = [next(rows["sizes"]) for _ in range(next(rows["blocks"]))]
            claim["order"] = [[next(rows["named"]) for _ in range(size)] for size in sizes]
            if kind in POINTS:
                claim["point"] = (
                    next(rows["points32"])
                    if kind == 0
                    else wide[next(rows["at"])]
                    if kind == 1
                    else [next(texts["fractions"]) for _ in range(d)]
                )
            elif kind == ODDS:
                claim |= {name: next(rows[name]) for name in ("at", "ceilings", "reached")}
            elif kind == UNDECIDED:
                claim["reason"] = next(texts["reasons"])
            else:
                size = next(rows["counts"])
                pairs = [[next(rows[name]) for _ in range(size)] for name in ("above", "below")]
                weights = {2: rows["weights"], 6: texts["fractions"]}
                shares = [next(weights[kind]) if kind != TWIN else None for _ in range(size)]
                claim["proof"] = [list(row) for row in zip(*pairs, shares, strict=True)]
            found.append(claim)
        return found

    def put(self, claims: list[dict[str, Any]]) -> None:
        """Write the claims over those of the file; numbers too large for their array raise."""
        d = self.arrays["points64"].shape[1]

        def of(*kinds: int) -> list[dict[str, Any]]:
            return [claim for claim in claims if claim["kinds"] in kinds]

        blocks = [block for c in claims for block in c["order"]]
        pairs = [row for c in of(*PROOFS, TWIN) for row in c["proof"]]
        arrays = {name: ([c[name] for c in claims], dtype) for name, dtype in COLUMNS.items()}
        arrays |= {
            "blocks": ([len(c["order"]) for c in claims], "<i8"),
            "sizes": ([len(block) for block in blocks], "<i8"),
            "named": ([i for block in blocks for i in block], "<i8"),
            "points32": ([c["point"] for c in of(0)], "<f4"),
            "counts": ([len(c["proof"]) for c in of(*PROOFS, TWIN)], "<i8"),
            "above": ([row[0] for row in pairs], "<i8"),
            "below": ([row[1] for row in pairs], "<i8"),
            "weights": ([row[2] for c in of(2) for row in c["proof"]], "<f8"),
        }
        if self.holds == "ceilings":
            for name, dtype in (("at", "<i8"), ("ceilings", "<f8"), ("reached", "<f8")):
                arrays[name] = ([c[name] for c in of(ODDS)], dtype)
        else:
            arrays["points64"] = ([c["point"] for c in of(1)], "<f8")
            arrays["at"] = (range(len(of(1))), "<i8")
        typed = {name: np.array(values, dtype) for name, (values, dtype) in arrays.items()}
        self.arrays |= {n: v.reshape(-1, d) if "points" in n else v for n, v in typed.items()}
        exact = [
            c["point"] if c["kinds"] == 5 else [row[2] for row in c["proof"]] for c in of(5, 6)
        ]
        self.lists |= {
            "methods": [c["methods"] for c in claims],
            "reasons": [c["reason"] for c in of(UNDECIDED)],
            "fractions": [text for texts in exact for text in texts],
        }


def framed(text: bytes) -> bytes:
    """Length and header, filled up with blanks."""
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def parted(content: bytes) -> tuple[bytes, bytes]:
    """The text of the header, and the numbers."""
    length = int.from_bytes(content[:8], "little")
    return content[8 : 8 + length].rstrip(b" "), content[8 + length :]
