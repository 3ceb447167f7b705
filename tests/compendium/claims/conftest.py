import pytest
import yaml

ENTRY = """
id: 003-figure-1
place: Section 1, Figure 1
title: It folds
kind: experiment
statement: A trained model loses less under noise.
sentence: {paper: "003", start: 4, length: 8, digest: 0123456789abcdef}
root: fold
notebook: 24_robustness
rule:
  evidence: {gain: mean extra loss, low: lower end, high: upper end, scale: of the model}
  adequate: scale > 2
  verdicts: {confirmed: high < 0, not confirmed: otherwise}
  why: zero is no effect
  says: "{gain:+.2f} nats [{low:+.2f}, {high:+.2f}]"
examples:
  confirmed: {gain: -0.2, low: -0.3, high: -0.1, scale: 3}
  not confirmed: {gain: 0.0, low: -0.1, high: 0.1, scale: 3}
  open: {gain: -0.2, low: -0.3, high: -0.1, scale: 1}
"""


@pytest.fixture
def entry():
    """A sound claim, to be spoilt."""
    return yaml.safe_load(ENTRY)


@pytest.fixture
def write(tmp_path):
    """Writes claims into a register of one paper and returns its folder."""

    def _write(*claims, **fields):
        head = {"paper": "003", "title": "A paper", "roots": {"fold": "A fold."}}
        content = head | {"claims": list(claims)} | fields
        (tmp_path / "003.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path

    return _write
