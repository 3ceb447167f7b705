"""Every block of the chapters' how-tos runs as it is printed, and prints something."""

import re

import pytest

from compendium import paths

PAGE = paths.root() / "docs" / "howto.md"
BLOCKS = re.findall(r"^## (.*?)\n.*?^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_each_section_has_a_block():
    assert [title for title, _ in BLOCKS] == re.findall(r"^## (.*)", PAGE.read_text("utf-8"), re.M)


@pytest.mark.parametrize(("title", "block"), BLOCKS, ids=[title[-4:-1] for title, _ in BLOCKS])
def test_a_block_runs(title, block, capsys):
    exec(compile(block, title, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out or "assert" in block
