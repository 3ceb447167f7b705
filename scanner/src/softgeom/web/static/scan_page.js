// The page that scans: it asks for a file and a feature set, shows how far the worker is, and what it found.

import { embed, offer } from "./page.js";
import { areCharacters, coverage } from "./scan_text.js";

const ROWS = 50; // of the table at first; a button shows more
const FIELDS = { upper: ["box", "ball"], lower: ["box"], gains: ["layernorm", "rmsnorm"], shifts: ["layernorm"] }; // of the form, with the sets that need them
const NONE = " none"; // no array is called so
const WORDS = {
  argmaxable: ["can win", "a point is stored at which each of them scores highest"],
  unargmaxable: ["can never win", "whatever the input, a weighted mean of others scores at least as high"],
  tied: ["tied", "another class has the same score everywhere"],
  undecided: ["undecided", "this page found neither a winning input nor a proof; softgeom scan decides nearly all of them"],
};
const COVERED = { missing: "missing from the model's list", unargmaxable: "can never win", tied: "tied", undecided: "undecided", argmaxable: "fine" };
const MARKED = /^\p{M}|^\s|[\p{C}\p{Z}]/u; // what cannot be seen by itself is named by its code points

/** Make the page alive; `code` is the worker's source, `table` the names of heads (scan_page.py), `example` an .npz file in base64 to try, and how it is called. */
export function scanPage(code, table, example, called) {
  const at = (id) => document.getElementById(id);
  let [worker, file, shown, vectors, begun] = [null, null, [], [], 0];
  const source = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));

  const say = (text) => (at("said").textContent = text);
  const complain = (text) => {
    at("problem").textContent = text;
    at("problem").hidden = !text;
  };

  function fresh() {
    worker?.terminate();
    worker = new Worker(source);
    worker.onmessage = ({ data }) => heard[data.kind](data);
    worker.onerror = (event) => heard.problem({ text: `The scan stopped: ${event.message}` });
  }

  function open(chosen) {
    if (!chosen) return;
    file = chosen;
    complain("");
    for (const id of ["choice", "working", "found"]) at(id).hidden = true;
    say(`Reading ${file.name}.`);
    fresh();
    worker.postMessage({ ask: "open", file, table });
  }

  const heard = {
    opened(head) {
      [shown, vectors] = [head.choices, head.vectors];
      const tables = shown.map(({ name, shape }) => [name, `${name} (${shape.map((n) => n.toLocaleString("en")).join(" × ")})`]);
      fill(at("weight"), [...(head.chosen ? [] : [["", "choose the layer"]]), ...tables]);
      at("weight").value = head.chosen ?? "";
      choose();
      at("choice").hidden = false;
      say(`${file.name}: ${head.said}. ${head.behind}`);
      at(head.chosen ? "start" : "weight").focus();
    },
    progress({ stage, done, of }) {
      at("bar").max = of;
      at("bar").value = done;
      const text = `${stage}: ${done.toLocaleString("en")} of ${of.toLocaleString("en")} classes`;
      at("far").textContent = `${text}, ${Math.round((performance.now() - begun) / 1000)} s`;
      if (at("said").dataset.stage !== stage) say(`${stage[0].toUpperCase()}${stage.slice(1)}.`); // once a stage: nobody wants to hear each number
      at("said").dataset.stage = stage;
    },
    scanned(result) {
      at("working").hidden = true;
      at("choice").hidden = false;
      show(result);
    },
    file: ({ name, bytes }) => offer(name, bytes),
    problem({ text }) {
      at("working").hidden = true;
      say("");
      complain(text);
    },
  };

  function fill(select, options) {
    select.replaceChildren(...options.map(([value, text]) => Object.assign(document.createElement("option"), { value, textContent: text })));
  }

  function choose() {
    const chosen = shown.find(({ name }) => name === at("weight").value);
    at("transposed").checked = chosen?.transposed ?? false;
    const ask = chosen && !chosen.open ? [] : [["", "choose"]];
    fill(at("bias"), [...ask, [NONE, "none"], ...vectors.map(({ name, length }) => [name, `${name} (${length.toLocaleString("en")})`])]);
    at("bias").value = chosen?.bias ?? (ask.length ? "" : NONE);
    warn();
  }

  /** Vectors of as many entries as there are features may be gain or shift of the last normalisation: which of them are, the visitor says. */
  function offerNorms(features) {
    const fit = vectors.filter(({ length }) => length === features);
    for (const [id, none] of [["gain", "all ones"], ["shift", "none"]]) fill(at(id), [["", "choose"], [NONE, none], ...fit.map(({ name }) => [name, name])]);
    askForSet();
  }

  /** What the visitor chose, null for none. */
  function said(id, what) {
    if (!at(id).value) throw new Error(`Choose ${what} first: the file does not say it.`);
    return at(id).value === NONE ? null : at(id).value;
  }

  /** Only the fields that the chosen set has. */
  function askForSet() {
    const kind = at("set").value;
    for (const [id, kinds] of Object.entries(FIELDS)) at(id).hidden = !kinds.includes(kind);
  }

  function warn() {
    const chosen = shown.find(({ name }) => name === at("weight").value);
    const shape = chosen?.shape ?? [];
    const [classes, features] = at("transposed").checked ? [...shape].reverse() : shape;
    offerNorms(features);
    at("shape").textContent = "";
    if (!chosen) return;
    const odd = classes < features ? " More features than classes: is the table stored the other way round?" : "";
    const open = chosen.open && ` Its bias is not certain: ${chosen.open}.`;
    at("shape").textContent = `${classes.toLocaleString("en")} classes over ${features.toLocaleString("en")} features.${odd}${open}`;
  }

  function featureSet() {
    const kind = at("set").value;
    if (kind === "unbounded") return { kind };
    if (kind === "layernorm" || kind === "rmsnorm")
      return { kind: "norm", centred: kind === "layernorm", gain: said("gain", "the normalisation's gain"), shift: kind === "layernorm" ? said("shift", "its shift") : null };
    const ball = kind === "ball";
    const bound = Number(at("bound").value);
    if (!(bound > 0) || !Number.isFinite(bound)) throw new Error("The bound must be a positive number.");
    if (ball) return { kind: "ball", radius: bound };
    const low = at("low").value.trim() === "" ? -bound : Number(at("low").value);
    if (!(low < bound)) throw new Error("The lower bound must be a number below the bound.");
    return { kind: "box", low, high: bound };
  }

  function start(event) {
    event.preventDefault();
    try {
      const choice = { weight: said("weight", "the layer"), bias: said("bias", "the bias"), transposed: at("transposed").checked };
      const set = featureSet();
      complain("");
      begun = performance.now();
      at("far").textContent = "";
      delete at("said").dataset.stage;
      at("choice").hidden = true;
      at("found").hidden = true;
      at("working").hidden = false;
      at("cancel").focus();
      worker.postMessage({ ask: "scan", choice, set, labels: at("labels").files[0] ?? null, blank: at("blank").value, file: file.name });
    } catch (error) {
      complain(error.message);
    }
  }

  function cancel() {
    open(file); // a new worker: the old one is ended where it is
    say("Cancelled.");
  }

  function show({ counts, lost, classes, features, seconds, wall, named, behind }) {
    const never = counts.unargmaxable + counts.tied;
    const numbers = (n) => n.toLocaleString("en");
    at("headline").textContent = never
      ? `${numbers(never)} of ${numbers(classes)} classes can never be the one answer.`
      : counts.undecided ? `No unargmaxable class among those that were decided.` : `Every one of the ${numbers(classes)} classes can win.`;
    at("counts").replaceChildren(
      ...Object.entries(WORDS).filter(([verdict]) => counts[verdict]).map(([verdict, [word, means]]) => {
        const item = document.createElement("li");
        item.append(Object.assign(document.createElement("b"), { textContent: `${numbers(counts[verdict])} ${word}` }), `: ${means}.`);
        return item;
      }),
    );
    at("took").textContent = `${numbers(classes)} classes over ${numbers(features)} features in ${seconds.toFixed(1)} s. ${behind}`;
    draw(wall);
    askForText(wall, lost, named);
    at("list").hidden = !lost.length;
    at("filter").value = "";
    list(lost, named);
    at("filter").oninput = () => list(lost, named);
    at("found").hidden = false;
    say(at("headline").textContent);
    at("headline").focus();
  }

  function list(lost, named, most = ROWS) {
    const asked = at("filter").value.trim().toLowerCase();
    const fit = lost.filter(({ t, token, verdict }) => !asked || `${t} ${token} ${verdict}`.toLowerCase().includes(asked));
    at("rows").replaceChildren(
      ...fit.slice(0, most).map(({ t, token, verdict, ceiling, blocking, of }) => {
        const row = document.createElement("tr");
        const more = of > blocking.length ? `, and ${of - blocking.length} more` : "";
        const held = blocking.map(({ token: other, share }) => (blocking.length === 1 && of <= 1 ? other : `${other} ${(100 * share).toFixed(0)}%`)).join(", ");
        const most = ceiling === null ? "" : `${Math.ceil(1e4 * ceiling) / 100}%`;
        const cells = [named ? `${token} (${t})` : String(t), WORDS[verdict][0], most, held + more];
        row.append(...cells.map((textContent, n) => Object.assign(document.createElement(n ? "td" : "th"), n ? { textContent } : { textContent, scope: "row" })));
        return row;
      }),
    );
    at("matching").textContent = `${fit.length.toLocaleString("en")} of ${lost.length.toLocaleString("en")} classes${fit.length > most ? `, the first ${most} are shown` : ""}.`;
    at("more").hidden = fit.length <= most;
    at("more").onclick = () => list(lost, named, most * 10);
  }

  /** Every class by its name, those that are not proven to win lit. */
  function draw(wall) {
    const apart = wall.every(([name]) => [...name].length < 2) ? "" : " ";
    const runs = [];
    for (const [name, lost] of wall) {
      if (runs.at(-1)?.lost !== lost) runs.push({ lost, names: [] });
      runs.at(-1).names.push(name);
    }
    at("wall").replaceChildren(...runs.flatMap(({ lost, names }) => [Object.assign(document.createElement(lost ? "b" : "span"), { textContent: names.join(apart) }), apart]));
  }

  /** The box for a text, where the classes are characters. */
  function askForText(wall, lost, named) {
    const names = wall.map(([name]) => name);
    at("covers").hidden = !(named && areCharacters(names));
    if (at("covers").hidden) return;
    const verdicts = names.map(() => "argmaxable");
    for (const { t, verdict } of lost) verdicts[t] = verdict;
    const cover = coverage(names, verdicts);
    at("text").oninput = () => showCoverage(cover(at("text").value));
    at("text").oninput();
  }

  /** The characters of each status; of those that are fine only how many. */
  function showCoverage({ characters, passedOver }) {
    const shown = ({ text, count }) => {
      const points = [...text].map((c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
      return (MARKED.test(text) ? points : text) + (count > 1 ? ` (${count} times)` : "");
    };
    const lines = Object.entries(COVERED).flatMap(([status, word]) => {
      const some = characters.filter((each) => each.status === status);
      if (!some.length) return [];
      return [[`${some.length} ${word}`, status === "argmaxable" ? "" : `: ${some.map(shown).join("  ")}`]];
    });
    const other = characters.filter(({ form }) => form);
    if (other.length) lines.push([`${other.length} written otherwise in the model's list`, `: ${other.map(({ text, form }) => `${text} (${form})`).join("  ")}`]);
    if (passedOver) lines.push([`${passedOver} not asked about`, ": line breaks, and what prints nothing"]);
    at("covered").replaceChildren(
      ...lines.map(([word, rest]) => {
        const item = document.createElement("li");
        item.append(Object.assign(document.createElement("b"), { textContent: word }), rest);
        return item;
      }),
    );
  }

  fresh();
  at("file").addEventListener("change", () => open(at("file").files[0]));
  at("example").addEventListener("click", tryExample);
  at("weight").addEventListener("change", choose);
  at("transposed").addEventListener("change", warn);
  at("set").addEventListener("change", askForSet);
  at("choice").addEventListener("submit", start);
  at("cancel").addEventListener("click", cancel);
  at("proofs").addEventListener("click", () => worker.postMessage({ ask: "proofs" }));
  at("layer").addEventListener("click", () => worker.postMessage({ ask: "layerFile" }));
  for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => (event.preventDefault(), at("drop").classList.add("sg-over")));
  for (const kind of ["dragleave", "drop"]) addEventListener(kind, () => at("drop").classList.remove("sg-over"));
  addEventListener("drop", (event) => (event.preventDefault(), open(event.dataTransfer.files[0])));
  embed();

  function tryExample() {
    const bytes = Uint8Array.from(atob(example), (character) => character.charCodeAt(0));
    open(new File([bytes], called));
  }
}
