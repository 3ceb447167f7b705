"""The shell of every page forbids what the page does not need."""

import re

import pytest

from softgeom.explorers.document import document


@pytest.mark.parametrize(
    ("needs", "allowed"),
    [
        ({"scripts": False}, {"default-src", "style-src", "img-src"}),
        ({}, {"default-src", "style-src", "img-src", "script-src"}),
        ({"workers": True}, {"default-src", "style-src", "img-src", "script-src", "worker-src"}),
    ],
)
def test_a_page_is_allowed_what_it_needs_and_nothing_else(needs, allowed):
    page = document("A < B", "p { margin: 0; }", "<p>text</p>", **needs)
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1]
    assert {rule.split()[0] for rule in policy.split("; ")} == allowed
    assert "default-src 'none'" in policy
    assert "<title>A &lt; B</title>" in page
