"""The register: what each source says, in our words, with the rule that decides; one file a paper,
`data/claims/<paper>.yaml`.

The fields stand in CONTRIBUTING.md, their shapes in `data/claims/schema.json`. Everything that
can be wrong is found when the register is read, each fault in one sentence, before anything runs.
"""

import ast
import functools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastjsonschema
import yaml

from compendium import paths
from compendium.claims import pointer
from compendium.claims.pointer import Pointer
from compendium.claims.rule import Rule, listed, read_rule
from compendium.notebooks import calls, cells

SCHEMA = paths.LIB.parent / "data" / "claims" / "schema.json"


@dataclass(frozen=True)
class Claim:
    """One claim of a source, or (kind `ours`) a question of our own. `title` is the statement in at
    most ten words; `sentences` point to the source's words, `hypotheses` say under which it states
    them, `misprint` what it prints and what it means, `root` names the cause that rows share,
    `notebook` passes the evidence, `examples` hold evidence that leads to each verdict.
    """

    id: str
    paper: str
    place: str
    title: str
    kind: str
    statement: str
    notebook: str
    rule: Rule
    examples: tuple[tuple[str, dict[str, Any]], ...]
    sentences: tuple[Pointer, ...] = ()
    hypotheses: str = ""
    root: str = ""
    misprint: str = ""


class Register(dict[str, Claim]):
    """All claims by id, in the order of the papers; the papers' titles and what they are about, the
    roots' meanings.
    """

    def __init__(
        self,
        claims: Mapping[str, Claim],
        titles: dict[str, str],
        roots: dict[str, str],
        about: dict[str, str],
    ) -> None:
        super().__init__(claims)
        self.titles, self.roots, self.about = titles, roots, about

    def __missing__(self, id: str) -> Claim:
        near = [other for other in self if other.startswith(id[:6])] or list(self)
        names = listed(near[:8]) or "none"
        raise ValueError(f"data/claims/ has no claim {id!r}; near it are {names}")


def load(folder: Path | None = None) -> Register:
    """The register of a folder, by default the clone's; ValueError with a line for each fault."""
    folder = folder or paths.root() / "data" / "claims"
    return _load(folder, tuple(path.stat().st_mtime_ns for path in sorted(folder.glob("*.yaml"))))


@functools.lru_cache(maxsize=1)
def _load(folder: Path, changed: tuple[int, ...]) -> Register:
    register, faults = read(folder)
    if faults:
        raise ValueError("\n".join(faults))
    return register


def read(folder: Path) -> tuple[Register, list[str]]:
    """The claims of a folder that are sound, and every fault, the file's name first."""
    claims: dict[str, Claim] = {}
    titles: dict[str, str] = {}
    roots: dict[str, str] = {}
    about: dict[str, str] = {}
    faults: list[str] = []
    entries: list[tuple[str, str, Any]] = []
    for path in sorted(folder.glob("*.yaml")):
        content, found = _read_file(path)
        faults += [f"{path.name}: {fault}" for fault in found]
        if not found:
            titles[content["paper"]] = str(content["title"])
            about[content["paper"]] = content.get("about", "")
            for name, meaning in content["roots"].items():
                if name in roots:
                    faults.append(f"{path.name}: duplicate root {name}, in two files")
                roots[str(name)] = " ".join(str(meaning).split())
            entries += [(path.name, content["paper"], entry) for entry in content["claims"]]
    for file, paper, entry in entries:
        claim, found = _read_claim(entry, paper, roots)
        name = entry.get("id", "a claim without id") if isinstance(entry, dict) else "an entry"
        if claim is not None and claim.id in claims:
            found = ["duplicate id"]
        faults += [f"{file}, {name}: {fault}" for fault in found]
        if claim is not None and not found:
            claims[claim.id] = claim
    named = Counter(str(entry.get("root")) for _, _, entry in entries if isinstance(entry, dict))
    faults += [f"the root {name} is named by no claim" for name in roots if not named[name]]
    return Register(claims, titles, roots, about), faults


def faults_of_pointers(register: Mapping[str, Claim]) -> list[str]:
    """One sentence for every pointer at which the source, if at hand, has another sentence."""
    return [
        f"{claim.id}: paper {place.paper} has no sentence of digest {place.digest} at "
        f"{place.start}; `python -m compendium pointer` finds the right place"
        for claim in register.values()
        for place in claim.sentences
        if pointer.has(place.paper) and not place.holds
    ]


def _read_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except yaml.YAMLError as error:
        return {}, [f"is not valid YAML ({' '.join(str(error).split())})"]
    listed_claims = isinstance(content, dict) and isinstance(content.get("claims"), list)
    # each claim is judged by itself, so that one fault does not hide another
    if fault := _misfit("file", content | {"claims": []} if listed_claims else content):
        return {}, [fault]
    if content["paper"] != path.stem:
        must = f'its paper must be "{path.stem}" as the file is named'
        return {}, [f"{must}, not {content['paper']!r}"]
    return content | {"roots": content.get("roots") or {}}, []


def _read_claim(entry: Any, paper: str, roots: Mapping[str, str]) -> tuple[Claim | None, list[str]]:
    if fault := _misfit("claim", entry):
        return None, [fault]
    rule, faults = read_rule(entry["kind"], entry["rule"])
    if not entry["id"].startswith(f"{paper}-"):
        faults.append(f"its id must begin with {paper}-")
    if (root := entry.get("root", "")) and root not in roots:
        faults.append(f"unknown root {root!r}; the files name {listed(roots) or 'none'}")
    if not paths.notebook(entry["notebook"]).is_file():
        faults.append(f"notebooks/{entry['notebook']}.ipynb does not exist")
    each = [(verdict, _listed(found)) for verdict, found in entry["examples"].items()]
    examples = tuple((verdict, evidence) for verdict, found in each for evidence in found)
    if rule is not None and not faults:
        faults = _faults_of_examples(entry["id"], rule, examples)
    if rule is None or faults:
        return None, faults
    written = ("place", "title", "statement", "hypotheses", "misprint")
    texts = {key: " ".join(entry.get(key, "").split()) for key in written}
    sentences = tuple(Pointer(**one) for one in _listed(entry.get("sentence", [])))
    named = {key: entry[key] for key in ("id", "kind", "notebook")} | texts
    more = {"rule": rule, "examples": examples, "sentences": sentences, "root": root}
    return Claim(paper=paper, **named, **more), []


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _misfit(kind: str, content: Any) -> str:
    """Where a `file` or a `claim` does not fit the schema; empty where it does."""
    try:
        _schemas()[kind](content, name_prefix=kind)
    except fastjsonschema.JsonSchemaValueException as error:
        return f"{error.message} (data/claims/schema.json)"
    return ""


@functools.cache
def _schemas() -> dict[str, Callable[..., Any]]:
    file = json.loads(SCHEMA.read_text(encoding="utf-8"))
    claim = file["$defs"]["claim"] | {"$defs": file["$defs"]}
    return {"file": fastjsonschema.compile(file), "claim": fastjsonschema.compile(claim)}


def _faults_of_examples(
    id: str, rule: Rule, examples: tuple[tuple[str, dict[str, Any]], ...]
) -> list[str]:
    named = {verdict for verdict, _ in examples}
    missing = [verdict for verdict in rule.outcomes if verdict not in named]
    faults = [f"no example leads to its verdict {verdict!r}" for verdict in missing]
    for expected, evidence in examples:
        try:
            found = rule.judge(id, evidence).verdict
        except ValueError as error:
            said = str(error).removeprefix(f"claim {id}: ")
            faults.append(f"its example of {expected!r}: {said}")
            continue
        if found != expected:
            faults.append(f"its example of {expected!r} leads to {found!r}")
    return faults


# libyaml, where PyYAML has it, reads eight times as fast
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):
    """YAML in which a key is a text, and a duplicate one an error, not a silent replacement."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        # "<<" takes in another mapping and is no key of this one
        own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=deep) for key in own]
        if twice := [key for key, count in Counter(map(str, keys)).items() if count > 1]:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate key {twice[0]!r}", node.start_mark
            )
        read = super().construct_mapping(node, deep=deep)
        return {str(key): value for key, value in read.items()}


def check(register: Mapping[str, Claim], notebooks: list[Path]) -> tuple[list[str], list[str]]:
    """Faults in what notebooks pass to the register, read from their code, and calls that can be
    judged only at run time; each in one sentence.

    A call `book.claim("003-theorem-2", slope=...)` must name a claim, pass exactly the evidence of
    its rule, and stand in the notebook that the register names.
    """
    faults, unknown = list[str](), list[str]()
    passed, dynamic = set[str](), set[str]()
    for notebook in notebooks:
        for number, code in cells(notebook).items():
            for _, id, given in calls(ast.parse(code), "claim"):
                where = f"{notebook.stem}, cell {number}"
                if id is None or None in given:
                    unknown.append(f"{where}: {id or 'a claim whose id'} is known only at run time")
                if id is None:
                    dynamic.add(notebook.stem)
                    continue
                passed.add(id)
                faults += [f"{where}: {f}" for f in _misuses(register, id, notebook.stem, given)]
    faults += [
        f"{claim.id}: {claim.notebook} never passes its evidence"
        for claim in register.values()
        if claim.id not in passed and claim.notebook not in dynamic
    ]
    return faults, unknown


def _misuses(
    register: Mapping[str, Claim], id: str, notebook: str, given: Collection[str | None]
) -> Iterator[str]:
    """What is wrong with one call; None among the names that it gives is a mapping."""
    if id not in register:
        yield f"the register has no claim {id!r}"
        return
    claim, takes = register[id], register[id].rule.evidence
    if claim.notebook != notebook:
        yield f"the register says that {claim.notebook} passes the evidence of {id}"
    if unknown := [name for name in given if name and name not in takes]:
        yield f"{id} has no evidence {listed(unknown)}; its rule takes {listed(takes)}"
    missing = [name for name in takes if name not in given]
    if missing and None not in given:
        yield f"{id} also needs the evidence {listed(missing)}"
