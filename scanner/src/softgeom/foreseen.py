"""Which failures somebody foresaw: those that a ``raise`` of ours tells in a sentence. What NumPy,
``json`` or a reader's library raises came unforeseen.
"""

from __future__ import annotations

import linecache
import re
import traceback

_OURS = {"softgeom", "compendium"}
# a frame of a worker's traceback
_REMOTE = re.compile(r'File "([^"\n]*)", line \d+, in [^\n]*\n +(\S[^\n]*)')


def foreseen(error: Exception) -> bool:
    """Whether a ``raise`` of ours wrote the sentence; where no source is installed to look at, we
    take it for one.
    """
    # it comes from a worker, with its traceback as text
    if type(error.__cause__).__name__ == "_RemoteTraceback":
        places = _REMOTE.findall(str(error.__cause__))
        return (
            bool(places)
            and not _OURS.isdisjoint(re.split(r"[\\/]", places[-1][0]))
            and _raises(places[-1][1])
        )
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return True
    frame, line = frames[-1]
    ours = (frame.f_globals.get("__package__") or "").partition(".")[0] in _OURS
    return ours and _raises(linecache.getline(frame.f_code.co_filename, line))


def _raises(statement: str) -> bool:
    return not statement.strip() or re.search(r"\braise\b", statement) is not None
