"""The audit asks about everything that is pinned, tells what is known, and never takes silence for
a good answer.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from compendium import audit
from compendium.pages import assets

LOCK = (
    "jinja2==2.4.1 \\\n    --hash=sha256:aa\n    # via demo\nnumpy==2.0 ; python_version < "
    "'3.12' \\\n    --hash=sha256:bb\n"
)


@pytest.fixture
def top(compendium):
    (compendium / "requirements.lock").write_text(LOCK)
    (compendium / "Makefile").write_text("TORCH    := torch==2.13.0\n")
    (compendium / ".github" / "workflows").mkdir(parents=True)
    used = "      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2\n"
    (compendium / ".github" / "workflows" / "ci.yml").write_text(used + used)
    return compendium


@pytest.fixture
def database(monkeypatch):
    """A database on this machine; `answer` maps a list of queries to what it sends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(
                json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            )
            body = database.answer(asked[-1])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_):
            pass

    class Database:
        answer = staticmethod(lambda queries: {"results": [{} for _ in queries]})

    asked: list[list[dict]] = []
    database = Database()
    database.asked = asked
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("SOFTGEOM_ADVISORIES", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield database
    server.shutdown()
    server.server_close()


def test_everything_pinned_is_asked_about_once(top, database, capsys):
    assert audit.main() == 0
    assert capsys.readouterr().out == "5 pinned packages, known vulnerabilities in 0\n"
    (queries,) = database.asked
    assert {(q["package"]["ecosystem"], q["package"]["name"], q["version"]) for q in queries} == {
        ("PyPI", "jinja2", "2.4.1"),
        ("PyPI", "numpy", "2.0"),
        ("PyPI", "torch", "2.13.0"),
        ("npm", assets.MATHJAX.name, assets.MATHJAX.version),
        ("GitHub Actions", "actions/checkout", "4.2.2"),
    }


def test_what_is_known_is_told_and_fails(top, database, capsys):
    def answer(queries):
        results = []
        for query in queries:
            hit = {"vulns": [{"id": "GHSA-2" if "page_token" in query else "GHSA-1"}]}
            more = {} if "page_token" in query else {"next_page_token": "x"}
            results.append(hit | more if query["package"]["name"] == "jinja2" else {})
        return {"results": results}

    database.answer = answer
    assert audit.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "jinja2 2.4.1 (PyPI): GHSA-1, GHSA-2"
    assert said[1].startswith(
        "5 pinned packages, known vulnerabilities in 1; https://osv.dev/vulnerability/GHSA-1"
    )
    assert len(database.asked) == 2


@pytest.mark.parametrize(
    "answer", [b"<html>busy</html>", {"results": []}, {"error": "x"}, [], {"results": None}]
)
def test_another_answer_is_no_good_news(top, database, capsys, answer):
    database.answer = lambda queries: answer
    assert audit.main() == 1
    said = capsys.readouterr().err
    assert said.startswith("error: the advisories at http://127.0.0.1:")
    assert said.endswith("nothing was audited\n")
    assert said.count("\n") == 1


def test_without_a_network_it_says_so_in_a_sentence(top, monkeypatch, capsys):
    monkeypatch.setenv("SOFTGEOM_ADVISORIES", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert audit.main() == 1
    said = capsys.readouterr().err
    assert said.startswith("error: the advisories at http://127.0.0.1:9 cannot be had (")
    assert said.count("\n") == 1


def test_the_repository_s_own_pins_are_found(repository):
    names = {(package.ecosystem, package.name) for package in audit.pinned(repository)}
    assert {
        ("PyPI", "numpy"),
        ("PyPI", "torch"),
        ("npm", "mathjax"),
        ("GitHub Actions", "actions/checkout"),
    } <= names
    assert len(names) > 100
