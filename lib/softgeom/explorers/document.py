"""One HTML text that asks nothing of a network: the shell of an explorer's page, the article and the answer sheet."""

from __future__ import annotations

import html

_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def document(title: str, style: str, body: str, *, scripts: bool = True, frames: bool = False) -> str:
    """A page whose content security policy forbids every request, and whatever it does not need.

    Parameters
    ----------
    title : str
        Plain text.
    style : str
        CSS.
    body : str
        HTML.
    scripts : bool
        Whether scripts written into the body may run.
    frames : bool
        Whether pages may be set into it, as texts of their own.
    """
    allowed = {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        **({"script-src": "'unsafe-inline'"} if scripts else {}),
        "img-src": "data:",
        **({"frame-src": "'self'"} if frames else {}),
    }
    policy = "; ".join(f"{what} {whence}" for what, whence in allowed.items())
    return _SHELL.format(policy=policy, title=html.escape(title), style=style.strip(), body=body.strip())
