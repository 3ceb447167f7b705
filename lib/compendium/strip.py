"""nbstripout in a third of its time: git starts it for every notebook that it looks at.

jsonschema builds a parser for international addresses (RFC 3987) whenever it is imported, which
takes longer than all else that happens here; it goes without where it finds none, and no notebook
holds such an address.
"""

from __future__ import annotations

import runpy
import sys


def skip_rfc3987_import() -> None:
    """Let jsonschema find no parser for international addresses, unless it has it already."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


if __name__ == "__main__":
    skip_rfc3987_import()
    runpy.run_module("nbstripout", run_name="__main__", alter_sys=True)
