"""Excerpts for the search hold what a page says, and nothing of what surrounds it."""

import json

from compendium.pages import report


def test_an_article_becomes_its_text(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "explorer.html").write_text("<article>not a page</article>")
    (tmp_path / "notebooks" / "10_demo.html").write_text(
        '<html><body><nav>Menu</nav><article><h1>A title<a class="headerlink" href="#x">#</a></h1>'
        "<p>One <b>cap</b>tive &amp; two<br>captors.</p><script>let hidden;</script><img "
        "alt='x'><p>End</article>after</body></html>"
    )
    text = report.excerpts(tmp_path)
    assert text.startswith("window.softgeomExcerpts = ")
    pages = json.loads(text.removeprefix("window.softgeomExcerpts = ").rstrip(";\n"))
    assert pages == {"notebooks/10_demo": "A title One captive & two captors. End"}
