"""Tables and claims as Markdown: three significant digits, no markup from data."""

import numpy as np
import pandas as pd
import pytest

from compendium import claims, markdown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.123"),
        (np.float32(1.81e-8), "1.81e-08"),
        (123456.7, "123,457"),
        (np.int64(6625), "6,625"),
        (2.0, "2"),
        (-0.0, "0"),
        (float("inf"), "inf"),
        (float("nan"), ""),
        (None, ""),
        (np.bool_(True), "yes"),
        (False, "no"),
        ("<s> a|b\n*c*_$x$", "&lt;s&gt; a\\|b \\*c\\*\\_\\$x\\$"),
        ("x" * 70, "x" * 60 + "..."),
    ],
)
def test_a_value_has_three_digits_and_no_markup(value, shown):
    assert markdown.digits(value) == shown


def test_a_table_says_its_caption_its_unit_and_what_is_left_out():
    frame = pd.DataFrame(
        {"class": [1305] * 16, "loss": [0.5] * 16} | {f"c_{n}": True for n in range(12)}
    )
    text = markdown.captioned(frame.rename_axis("row"), "All | of it", "[csv](x.csv)")
    told, _, head, rule, first, *_ = text.splitlines()
    left = "the first 8 of 16 rows, 12 of 15 columns, [csv](x.csv)"
    assert told == f"**Table.** All \\| of it ({left})"
    assert head.startswith("| row | class | loss (nats) | c 0 | c 1 |")
    assert rule.startswith("| ---: | ---: | ---: | --- |")
    assert first.startswith("| 0 | 1305 | 0.5 | yes | yes |")
    assert len(text.splitlines()) == 4 + 8
    assert len(markdown.captioned(frame[:15], "short").splitlines()) == 4 + 15


def test_a_claim_says_what_its_finding_leaves_out(register, claim):
    more = {"evidence": {"gain": "in nats", "seeds": "how many"}}
    entry = claim("001-a", title="It folds")
    entry["rule"] |= more
    entry["examples"] = {
        verdict: found | {"seeds": 3} for verdict, found in entry["examples"].items()
    }
    register(entry)
    stated = claims.load()["001-a"]
    lines = markdown.claim(stated, stated.rule.judge("001-a", {"gain": -1, "seeds": 3}))
    assert lines.startswith("**Confirmed**: It folds. 001, Section a, `001-a`")
    assert lines.endswith("- *Found.* -1.00 nats\n- *Also measured.* `seeds` 3 (how many)")
