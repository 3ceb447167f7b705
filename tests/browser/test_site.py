"""The site: Sphinx builds it from the repository's pages, and every page can be reached."""

import re
import shutil

import pytest

import softgeom
from compendium.pages import site

pytestmark = pytest.mark.browser

NOTEBOOK = "20_scalar_margins"


@pytest.fixture(scope="module")
def front(repository, tmp_path_factory):
    """The front page of the site, built beside the repository."""
    root = tmp_path_factory.mktemp("compendium")
    for path in repository.iterdir():
        if path.name not in ("build", "docs", "executed"):
            (root / path.name).symlink_to(path)
    shutil.copytree(repository / "docs", root / "docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTGEOM_ROOT", str(root))
        return site.build()


def test_every_page_is_reached_from_the_front_page(front, repository):
    """Every link and every picture leads to a file of the site."""
    seen, waiting = set(), [front]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        text = re.sub(r"(?s)<script\b.*?</script>", "", page.read_text(encoding="utf-8"))
        for address in re.findall(r'(?:href|src)="(?![a-z]+:)([^"#?]+)[^"]*"', text):
            target = (page.parent / address).resolve()
            assert target.is_file(), f"{page} leads to {address}: it is missing"
            if target.suffix == ".html":
                waiting.append(target)
    after = re.search(r'class="right-next"\s+href="([^"]+)"', front.read_text(encoding="utf-8"))
    assert after is not None
    assert after[1].startswith("lessons/1_")
    reached = {page.relative_to(front.parent).as_posix() for page in seen}
    alone = {"story.html", "scan.html", "explorers/fold.html", "lessons/4_leaders.html"}
    docs = {f"docs/{path.stem}.html" for path in repository.glob("docs/*.md")}
    assert reached >= {f"docs/notebooks/{NOTEBOOK}.html", *alone, *docs}


def test_a_notebook_shows_its_results_and_the_search_finds_it(front, open_tab):
    page = (front.parent / "docs" / "notebooks" / f"{NOTEBOOK}.html").read_text(encoding="utf-8")
    for part in (f"{NOTEBOOK}-mass.png", "003-proposition-1", "masses.csv", "<summary>Code<"):
        assert part in page
    names = (front.parent / site.SETTINGS / "api.html").read_text(encoding="utf-8")
    assert not {name for name in softgeom.__all__ if f'id="softgeom.{name}"' not in names}
    tab = open_tab(f"{(front.parent / 'search.html').as_uri()}?q=unargmaxable")
    tab.locator("#search-results li a").first.wait_for()
    assert tab.locator("#search-results li").count() > 1
