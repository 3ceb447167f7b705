"""JSON from files and servers that nobody vouches for."""

from __future__ import annotations

import json
from typing import Any


def parse_json(content: bytes | str, label: str) -> Any:
    """Parse a JSON text whose author is not to be trusted; ValueError names the file by `label`."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{label} is not a usable JSON file: it is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{label} is not a valid JSON file ({error}).") from error
