"""One HTML text that asks nothing of a network: the shell of an explorer's page, the article and
the answer sheet.
"""

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
{head}<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""

# On top of the explorers' stylesheet, for a page that is one figure.
FIGURE = """
html { background: #ffffff; }
@media (prefers-color-scheme: dark) { html { background: #14181d; } }
html[data-theme="light"] { background: #ffffff; }
html[data-theme="dark"] { background: #14181d; }
body { margin: 0; }
main.softgeom { margin: 0 auto; padding: 12px 16px 24px; box-sizing: border-box; }
h1 { font-size: 1.5em; line-height: 1.2; margin: 0.2em 0; }
html[data-framed] h1 { display: none; }
"""


def document(
    title: str,
    style: str,
    body: str,
    *,
    head: str = "",
    scripts: bool = True,
    workers: bool = False,
) -> str:
    """A page whose content security policy forbids every request, and all that it does not need.

    ``title`` is plain text, ``style`` CSS, ``body`` HTML; ``head`` has more elements of the head.
    ``scripts`` in the body may run, and may start ``workers`` from texts of their own.
    """
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'"]
    allowed += ["script-src 'unsafe-inline'"] if scripts else []
    allowed += ["worker-src blob:"] if workers else []
    policy = "; ".join([*allowed, "img-src data:"])
    parts = {"title": html.escape(title), "style": style.strip(), "body": body.strip()}
    return _SHELL.format(policy=policy, head=head, **parts)
