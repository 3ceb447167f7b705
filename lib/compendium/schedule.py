"""Run notebooks that are not up to date (`compendium.why`), each after those whose results it
reads, several at a time, and say in one line how far that is.

Of what could start, the one with the longest way to the end starts first, by the times in
`results/bench/notebooks.csv`. What a notebook prints goes to `executed/PROFILE/NAME.log`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout

from compendium import edges, parameters, paths, profiles, runner, runs, warm, why
from softgeom.orphans import end_with_parent, make_has_ended

_TIMES = "results/bench/notebooks.csv"
_TICK = 0.2  # seconds between looks at what runs
_SILENCE = 60.0  # seconds after which a log gets a line although no notebook has ended
_PRIOR = 30.0  # seconds of work for which the committed times are believed
_LAST_LINES = 60  # of what a failed notebook printed


@dataclass(frozen=True, order=True)
class Task:
    """One notebook in one profile."""

    profile: str
    name: str


@dataclass
class _Running:
    process: Any  # with poll, terminate, kill and cpu_seconds
    started: float
    inputs: dict[str, str]


def run(names: Iterable[str], profile: str, jobs: int, overrides: str = "") -> int:
    """Run notebooks that are not up to date, and what they need; return how many ran. Names are
    notebooks (`10_braid_counts`) or chapters; none stands for all, in the profile `models` for
    those with a column of that name. With `overrides` (`PARAMS`) the one that is named runs into a
    profile of its own. ValueError when a name or parameters do not fit, or a notebook failed.
    """
    lock = FileLock(paths.root() / "build" / "notebooks.lock")
    Path(lock.lock_file).parent.mkdir(exist_ok=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print("waiting for the other make that runs notebooks here ...", flush=True)
        lock.acquire()
    with lock:
        return _run(tuple(names), profile, jobs, overrides)


def _run(chosen: tuple[str, ...], profile: str, jobs: int, overrides: str) -> int:
    if overrides and len(chosen) != 1:
        raise ValueError('PARAMS changes one notebook: make 10_braid_counts PARAMS="seed=1"')
    parameters.check(profile)
    if overrides:
        parameters.override(overrides, chosen[0])
    needs = edges.derive(paths.root())
    names = _names(chosen, profile, list(needs))
    graph: dict[Task, set[Task]] = {}
    waiting = [Task(profile, name) for name in names]
    while waiting:
        task = waiting.pop()
        if task not in graph:
            below = profiles.below(task.profile)
            graph[task] = {Task(below, other) for other in needs[task.name].notebooks}
            waiting += graph[task]
    if overrides:
        del graph[Task(profile, chosen[0])]
    done = _Scheduler(graph, jobs).run() if graph else []
    if overrides:
        print(f"{chosen[0]}: {runner.run(chosen[0], profile, overrides).parent}")
    elif not done:
        print(f"up to date: results/{profile}, figures/{profile}, executed/{profile}")
    return len(done)


class _Scheduler:
    def __init__(self, graph: dict[Task, set[Task]], jobs: int) -> None:
        self.graph, self.jobs = graph, jobs
        self.parent, self.started = os.getppid(), time.time()
        self.expected = _expected(graph)
        self.way = _ways_to_the_end(graph, self.expected)
        self.running: dict[Task, _Running] = {}
        self.open = set(graph)  # neither done nor found up to date
        self.done: list[tuple[Task, float]] = []
        self.failed: list[Task] = []
        self.offline = ""
        self.line = Line(sys.stdout)

    def run(self) -> list[tuple[Task, float]]:
        """Run what is not up to date; what ran, with its seconds."""
        sorter = TopologicalSorter(self.graph)
        sorter.prepare()
        ready: list[Task] = []
        ended: list[Task] = []
        begun = time.monotonic()
        try:
            while sorter.is_active() and not (self.failed and not self.running):
                new = sorter.get_ready()
                ready = sorted([*ready, *new], key=lambda task: (-self.way[task], task))
                for task in list(ready):
                    if self.failed or len(self.running) >= self.jobs:
                        break
                    ready.remove(task)
                    if why.is_fresh(task.name, task.profile):
                        self.open.discard(task)
                        sorter.done(task)
                    else:
                        self._start(task)
                if self.running:
                    self.line.show(self._progress(), now=bool(ended))
                    time.sleep(0 if ended else _TICK)
                for task in (ended := self._ended()):
                    sorter.done(task)
        except KeyboardInterrupt:
            for run in self.running.values():
                run.process.terminate()
            for run in self.running.values():
                run.process.wait()
            raise
        finally:
            self.line.close()
        if self.failed:
            names = ", ".join(task.name for task in self.failed)
            raise ValueError(f"{names} failed; {len(self.done)} notebooks ran, and stay")
        if self.done:
            self._summary(time.monotonic() - begun)
        return self.done

    def _start(self, task: Task) -> None:
        inputs = why.inputs(task.name, task.profile)
        log = _log(task)
        log.parent.mkdir(parents=True, exist_ok=True)
        process: Any
        # code that changed on disk since it was imported here is not the code that a fork would run
        if warm.POSSIBLE and not why.changed_since(self.started, inputs):
            if not self.running and not self.done:
                runner.prepare_environment()
                waiting = {task.name for task in self.open}
                warm.import_for(paths.notebook(name) for name in sorted(waiting))
            me = os.getpid()

            def work() -> int:
                with open(log, "wb") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
                warm.fork_kernel()
                end_with_parent(me)
                return runner.run_alone(task.name, task.profile)

            process = warm.Forked(work)
        else:
            command = [sys.executable, "-m", "compendium", "run", task.name]
            command += ["--profile", task.profile]
            with open(log, "wb") as file:
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        self.running[task] = _Running(process, time.monotonic(), inputs)

    def _ended(self) -> list[Task]:
        """Notebooks that have ended well since the last look."""
        if make_has_ended(self.parent):
            os._exit(1)
        finished = []
        for task, run in list(self.running.items()):
            code = run.process.poll()
            if code is None:
                continue
            seconds = time.monotonic() - run.started
            del self.running[task]
            self.open.discard(task)
            said = _log(task).read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
            for line in said:  # once the hub does not answer one, the next ones need not ask it
                if line.startswith("hub: ") and "does not answer" in line and not self.offline:
                    self.offline = line.removeprefix("hub: ").partition(" ")[0]
                    os.environ["HF_HUB_OFFLINE"] = "1"
            if code:
                self.failed.append(task)
                self.line.above("\n".join(said[-_LAST_LINES:]))
                continue
            cpu = getattr(run.process, "cpu_seconds", 0.0)
            why.note(task.name, task.profile, run.inputs, seconds, cpu)
            self.done.append((task, seconds))
            finished.append(task)
        return finished

    def _progress(self) -> str:
        total, left = len(self.graph), _minutes(self._seconds_left())
        names = ", ".join(sorted(task.name for task in self.running))
        return f"[{total - len(self.open)} of {total} notebooks, {left} left] {names}"

    def _seconds_left(self) -> float:
        """From the committed times and how this machine has kept them so far."""
        now = time.monotonic()
        elapsed = {task: now - run.started for task, run in self.running.items()}
        late = [(task, spent) for task, spent in elapsed.items() if spent > self.expected[task]]
        took = [*self.done, *late]
        pace = (_PRIOR + sum(seconds for _, seconds in took)) / (
            _PRIOR + sum(self.expected[task] for task, _ in took)
        )
        rest = {task: pace * self.expected[task] for task in self.open}
        rest |= {task: max(rest[task] - spent, 0.1 * spent) for task, spent in elapsed.items()}
        ways = _ways_to_the_end({task: self.graph[task] & self.open for task in self.open}, rest)
        return max(max(ways.values(), default=0.0), sum(rest.values()) / self.jobs)

    def _summary(self, seconds: float) -> None:
        for profile in dict.fromkeys(task.profile for task, _ in self.done):
            names = [task.name for task, _ in self.done if task.profile == profile]
            print(
                f"{len(names)} notebooks in {_minutes(seconds)}: results/{profile}, "
                f"figures/{profile}, executed/{profile}"
            )
            last = runs.all_last(profile)
            if aside := sum(bool(run.aside) for run in last if run.name in names):
                reason = f"{self.offline} does not answer" if self.offline else "data is missing"
                print(
                    f"{aside} of them ran on stand-in or incomplete data ({reason}): their "
                    "results are in subfolders stand-in; data/README.md says what is missing"
                )


class Line:
    """One line, written anew in a terminal; in a log, one a notebook or minute."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.live = stream, stream.isatty()
        self.last, self.when = "", 0.0

    def show(self, text: str, *, now: bool = False) -> None:
        if self.live:
            width = os.get_terminal_size(self.stream.fileno()).columns - 1
            self._write(f"\r\x1b[K{text[:width]}", text)
        elif now or not self.last or time.monotonic() - self.when > _SILENCE:
            self._write(f"{text}\n", text)

    def above(self, text: str) -> None:
        """Something that stays, above the line."""
        self.close()
        print(text, file=self.stream, flush=True)

    def close(self) -> None:
        if self.live and self.last:
            self._write("\r\x1b[K", "")

    def _write(self, raw: str, text: str) -> None:
        if text != self.last:
            self.stream.write(raw)
            self.stream.flush()
        self.last, self.when = text, time.monotonic()


def draw() -> str:
    """The notebooks and what each needs as a Mermaid graph, which Markdown pages show."""
    lines = ["graph LR"]
    for name, needs in edges.derive(paths.root()).items():
        lines += [f"  {other} --> {name}" for other in needs.notebooks] or [f"  {name}"]
    return "\n".join(lines)


def _names(chosen: tuple[str, ...], profile: str, known: list[str]) -> list[str]:
    if not chosen:
        if profile != profiles.MODELS:
            return known
        return [name for name in known if parameters.has_column(name, profile)]
    found: list[str] = []
    for word in chosen:
        first = profiles.CHAPTERS.get(word)
        some = [name for name in known if (name.startswith(first) if first else name == word)]
        if not some:
            raise ValueError(f"there is no notebook {word!r}; there are {', '.join(known)}")
        found += some
    return found


def _expected(tasks: Iterable[Task]) -> dict[Task, float]:
    """Seconds on two idle cores, as committed for this profile or another; else 20."""
    path = paths.root() / _TIMES
    seconds: dict[Task | str, float] = {}
    for row in runs.csv_rows(path) if path.is_file() else []:
        took = float(row["seconds"])
        seconds |= {row["notebook"]: took, Task(row["profile"], row["notebook"]): took}
    return {task: seconds.get(task, seconds.get(task.name, 20.0)) for task in tasks}


def _ways_to_the_end(
    graph: Mapping[Task, set[Task]], seconds: Mapping[Task, float]
) -> dict[Task, float]:
    """Of each task, the seconds of the longest chain that begins with it."""
    way = dict.fromkeys(graph, 0.0)
    for task in reversed(list(TopologicalSorter(graph).static_order())):
        way[task] += seconds[task]
        for needed in graph[task]:
            way[needed] = max(way[needed], way[task])
    return way


def _log(task: Task) -> Path:
    return paths.executed_dir(task.profile) / f"{task.name}.log"


def _minutes(seconds: float) -> str:
    return f"{max(seconds, 1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
