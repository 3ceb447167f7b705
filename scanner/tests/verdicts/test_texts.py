"""Classes that are never in the most probable text of CTC: against enumeration of texts and LPs."""

import itertools
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.optimize

import softgeom as sg
from softgeom.asking import Router, ask_texts
from softgeom.asking import texts as deciding
from softgeom.certifying.kernel import verify_expert
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, EvidenceError, Witness
from softgeom.examples import uniform_layer
from softgeom.layer import Box, SoftmaxLayer

BOX = Box(2.0)


def texts(P):
    """Probability of every text, given P (frames, classes), class 0 the blank: all alignments."""
    found = {}
    for path in itertools.product(range(P.shape[1]), repeat=len(P)):
        text = tuple(k for k, _ in itertools.groupby(path) if k)
        found[text] = found.get(text, 0.0) + np.prod([p[k] for p, k in zip(P, path, strict=True)])
    return found


def is_free(layer, t, removed):
    """Whether class t strictly wins somewhere in the box once these are removed: one LP."""
    rivals = [i for i in range(layer.classes) if i != t and i not in removed]
    W, b = layer.W.astype(float), layer.bias.astype(float)
    A = np.column_stack([W[rivals] - W[t], np.ones(len(rivals))])
    bounds = [(-2, 2)] * layer.dimension + [(None, 1)]
    cost = [0] * layer.dimension + [-1]
    found = scipy.optimize.linprog(cost, A_ub=A, b_ub=b[t] - b[rivals], bounds=bounds)
    return -found.fun > 1e-9


def lines(seed):
    """Eight classes on a line; class 1 lies among the others, somewhat behind."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(8, 1)), rng.normal(size=8) * 0.3
    W[1], b[1] = 0, -0.5
    return SoftmaxLayer(W, b)


@pytest.mark.parametrize("seed", range(12))
def test_every_class_against_all_pairs(seed):
    """Never in the text iff the class stays out without the blank and any two others."""
    layer = lines(seed)
    found = ask_texts(layer, range(1, 8), features=BOX, seed=seed)
    assert found.verify()
    for one in found.experts:
        others = [i for i in range(1, 8) if i != one.expert]
        free = any(is_free(layer, one.expert, {0, *p}) for p in itertools.combinations(others, 2))
        assert one.verdict == ("possible" if free else "impossible")


def test_the_theorem_on_random_pictures():
    """The most probable text never holds the class, and some text with another one in its place is
    more probable by the margin for each time that it stands there.
    """
    rng, looked = np.random.default_rng(0), 0
    for seed in range(20):
        layer = lines(seed)
        (one,) = ask_texts(layer, [1], features=BOX).experts
        if one.verdict != "impossible":
            continue
        looked += 1
        for _ in range(3):
            Y = rng.uniform(-2, 2, (3, 1)) @ layer.W.T + layer.bias
            found = texts(np.exp(Y - np.logaddexp.reduce(Y, axis=1, keepdims=True)))
            assert 1 not in max(found, key=found.get)
            for text in (text for text in found if 1 in text):
                n = text.index(1)
                others = [(*text[:n], i, *text[n + 1 :]) for i in range(2, 8)]
                best = max(found.get(other, 0.0) for other in others)
                assert found[text] <= np.exp(one.margin) * best * (1 + 1e-12)
    assert looked >= 5


def test_a_class_that_wins_no_frame_may_be_the_text():
    """(.45, .30, .25) at two frames: the blank is what keeps class 1 from winning."""
    found = texts(np.array([[0.45, 0.30, 0.25]] * 2))
    assert max(found, key=found.get) == (1,)
    assert found[1,] == pytest.approx(0.36)
    layer = SoftmaxLayer([[1.0], [0.0], [-1.0]])
    assert ask_texts(layer, features=BOX).counts["possible"] == 1


def test_the_blank_is_no_rival_and_does_not_count(tmp_path):
    layer = SoftmaxLayer([[3.0], [0.0], [1.0], [1.0], [-1.0], [-1.0], [-2.0]])
    found = ask_texts(layer, [1], features=BOX)
    assert found.counts["possible"] == 1  # on the right, behind the blank and two others
    found.save(tmp_path / "proofs")
    again = Router.load(tmp_path / "proofs", layer)
    assert again.blank == 0
    assert again.verify()
    (answer,) = again.experts[0].answers
    with pytest.raises(EvidenceError, match="leaves 3 experts that may be ahead"):
        verify_expert(layer, BOX, 1, 3, "possible", [answer])
    named = Answer(Order([[1], [0]]), Witness(np.array([-1.0])), "point", 0, 1.0)
    with pytest.raises(EvidenceError, match="names the blank"):
        verify_expert(layer, BOX, 1, 3, "possible", [named], 0)


def test_questions_about_one_class_decide_what_the_parts_leave(monkeypatch):
    """Without any parts the verdicts are the same, also on two workers; with too few questions a
    class is undecided.
    """
    wanted = [ask_texts(lines(s), range(1, 8), features=BOX).counts for s in range(4)]
    monkeypatch.setattr(deciding._Deal, "play", lambda *parts, **how: None)
    assert [ask_texts(lines(s), range(1, 8), features=BOX).counts for s in range(4)] == wanted
    assert ask_texts(lines(0), range(1, 8), features=BOX, n_jobs=2).counts == wanted[0]
    few = ask_texts(lines(0), range(1, 8), features=BOX, most=1)
    assert few.counts["undecided"] > 0
    assert few.verify()


KILLED = """
import os, signal, sys
import softgeom as sg
from softgeom.asking import texts
from softgeom.examples import uniform_layer
meet, done = texts.meet, []

def killed(search):
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(search)
    return meet(search)

texts.meet = killed
sg.ask(uniform_layer(40, 2), in_text=[], ctc_blank=0, out=sys.argv[1])
"""


def test_a_search_that_was_killed_goes_on(tmp_path, monkeypatch, caplog):
    """After SIGKILL nothing finished is sought again, unless its file is damaged or another's, and
    the table is the same.
    """
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    assert killed.returncode == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "blocks").iterdir()}
    assert len(finished) > 3  # the scans before, and three classes
    layer, meet, sought = uniform_layer(40, 2), deciding.meet, []
    whole = ask_texts(layer).table
    monkeypatch.setattr(deciding, "meet", lambda search: sought.append(search) or meet(search))

    def again():
        sought.clear()
        found = sg.ask(layer, in_text=[], ctc_blank=0, out=tmp_path)
        assert found.table.equals(whole)
        return len(sought)

    assert again() == 14 - 3
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert again() == 0
    files = [path for path in (tmp_path / "blocks").iterdir() if path not in finished]
    other, latest = sorted(files, key=lambda path: path.stat().st_mtime_ns)[-2:]
    for content in (latest.read_bytes()[:-9], other.read_bytes()):
        latest.write_bytes(content)
        assert again() == 1
    assert caplog.text.count("cannot be used: set aside") == 2
    assert "is about another question" in caplog.text


def test_the_blank_itself_or_a_layer_without_one_is_refused():
    with pytest.raises(ValueError, match="class 0 is the blank"):
        ask_texts(lines(0), [0, 1])
    with pytest.raises(ValueError, match="the blank: the model has no class"):
        ask_texts(lines(0), [1], blank="<blank>")
