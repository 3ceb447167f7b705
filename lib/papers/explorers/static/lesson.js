// A lesson on a page of its own: its questions answer, its figures show what they hid, and all that was answered stays in this browser until
// it is saved as one file for the teacher (python -m classroom judges it again). No kernel, no server, no network.

import { judge, read } from "./lesson_answers.js";
import { PageModel, embed, offer } from "./page.js";
import { html } from "./stage.js";

const ASKED = { number: "a number", whole: "a whole number", members: "names", order: "names in order", array: "numbers", fractions: "fractions" };
const CHOICES = { truth: [["True", true], ["False", false]] };
const HEADINGS = new Map([[true, "Right."], [false, "Not yet."], [null, "Compare."]]);
// a prediction is not judged; the sentence for a right one says so (SEEN in lesson.py)
const seen = (right, text) => right === null && text.includes("You saw it");
const heading = (right, text) => HEADINGS.get(right || seen(right, text) || right);

/** Bring the page to life: its figures and its questions, with what was answered here before. */
export function teach(lesson, tools) {
  const kept = remembered(lesson.key) ?? { attempts: [], name: "", explanation: "" };
  const keep = () => remember(lesson.key, kept);
  const models = [...document.querySelectorAll("[data-figure]")].map((el) => {
    const { kind, state } = lesson.figures[el.dataset.figure];
    const model = new PageModel(state);
    tools[kind].render({ model, el });
    return { el, model };
  });
  const lift = (name) => {
    for (const { el, model } of models) if (el.dataset.until === name) model.set("hidden", false);
    for (const box of document.querySelectorAll(`.after[data-until="${name}"]`)) box.classList.add("told");
  };
  const boxes = new Map([...document.querySelectorAll("[data-question]")].map((box) => [box.dataset.question, box]));
  for (const [name, box] of boxes) {
    const before = models.filter(({ el }) => el.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    fillBox(box, lesson.questions[name], before?.model, (value) => {
      const { right, text } = judge(name, value, lesson, tools.all);
      kept.attempts.push({ asked: name, answer: value, right, text });
      keep();
      if (right !== false) lift(name);
      return { right, text };
    });
  }
  for (const { asked, right, text } of kept.attempts) {
    reply(boxes.get(asked), heading(right, text), text, right);
    if (right !== false) lift(asked);
  }
  handIn(document.querySelector(".hand-in"), lesson, kept, keep);
  embed();
}

function fillBox(box, { form, hints }, model, answer) {
  const respond = (read) => {
    if (read.problem) return reply(box, "I cannot read that.", "", null, read.problem);
    const { right, text } = answer(read.value);
    reply(box, heading(right, text), text, right);
  };
  const choices = CHOICES[form.kind] ?? form.options?.map((option) => [option, option]);
  const row = html("form", { class: "row" });
  if (choices) row.append(...choices.map(([label, value]) => html("button", { type: "button", onclick: () => respond({ value }) }, label)));
  else {
    const field = html("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-label": `Answer: ${ASKED[form.kind]}`, placeholder: ASKED[form.kind] });
    row.append(field, html("button", {}, "Check"));
    row.addEventListener("submit", (event) => (event.preventDefault(), respond(read(field.value, form))));
    const shown = () => ["W", "b", "Z"].map((key) => model?.get(key)).find((value) => suits(value, form));
    if (shown()) row.append(html("button", { type: "button", onclick: () => (field.value = written(shown())) }, "Take the figure's"));
  }
  let given = 0;
  const more = html("button", { type: "button", class: "quiet" }, "Hint");
  const told = html("div", { class: "hints" });
  more.addEventListener("click", () => {
    told.append(inHtml("p", hints[given++]));
    more.hidden = given === hints.length;
  });
  if (hints.length) row.append(more);
  box.append(row, told, html("div", { class: "reply", "aria-live": "polite" }));
}

/** Whether a figure's numbers have the shape that a question asks for. */
function suits(value, { shape }) {
  if (!shape || !Array.isArray(value)) return false;
  const [least, most] = [shape[0]].flat().concat(shape[0]);
  return value.length >= least && value.length <= most && (shape.length === 2) === Array.isArray(value[0]);
}

const written = (value) => (Array.isArray(value[0]) ? value.map((row) => row.join(", ")).join("; ") : value.join(", "));
const inHtml = (tag, text) => Object.assign(html(tag), { innerHTML: text }); // of a sentence of ours, never of what was typed

function reply(box, heading, text, right, plain = "") {
  const words = inHtml("span", text);
  if (plain) words.textContent = plain;
  const place = box.querySelector(".reply");
  place.className = `reply${heading === HEADINGS.get(true) ? " right" : ""}`;
  place.replaceChildren(html("strong", {}, heading), " ", words);
}

function handIn(box, lesson, kept, keep) {
  const [name, explanation] = ["name", "explanation"].map((key) => {
    const field = box.querySelector(`[name="${key}"]`);
    field.value = kept[key];
    field.addEventListener("input", () => ((kept[key] = field.value), keep()));
    return field;
  });
  box.querySelector("[data-save]").addEventListener("click", () => {
    const words = `answers_${lesson.number}_${name.value.trim().replace(/[^\p{L}\p{N}]+/gu, "_") || "nameless"}.html`;
    offer(words, sheet(lesson, kept, name.value, explanation.value), "text/html");
  });
  box.querySelector("[data-forget]").addEventListener("click", () => {
    if (!confirm("Forget all that was answered on this page?")) return;
    remember(lesson.key, null);
    location.reload();
  });
}

/** What the teacher gets: a page that can be read and printed, with the answers once more for the command that judges them. */
export function sheet(lesson, { attempts }, name, explanation) {
  const safe = (text) => String(text).replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
  const tried = [...new Set(attempts.map(({ asked }) => asked))];
  const parts = tried.map((asked) => {
    const lines = attempts.filter((attempt) => attempt.asked === asked).map(({ answer, right, text }) => `<li><code>${safe(JSON.stringify(answer))}</code><br>${heading(right, text)} ${text}</li>`);
    return `<h2>${asked}</h2>\n<ol>\n${lines.join("\n")}\n</ol>`;
  });
  const data = { lesson: lesson.key, name, explanation, attempts: attempts.map(({ asked, answer }) => [asked, answer]) };
  return `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Answers of ${safe(name)}</title>
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 1.5rem auto; padding: 0 1rem; } code { overflow-wrap: anywhere; }</style>
<h1>${safe(lesson.title)}: ${safe(name)}</h1>
${parts.join("\n")}
<h2>Explained to a neighbour</h2>
<p>${safe(explanation)}</p>
<script type="application/json" id="answers">${JSON.stringify(data).replace(/</g, "\\u003c")}<\/script>
</html>
`;
}

function remembered(key) {
  try {
    return JSON.parse(localStorage.getItem(`softgeom ${key}`));
  } catch {
    return null; // a browser that keeps nothing of pages
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(`softgeom ${key}`, JSON.stringify(value));
  } catch {
    // the page works all the same, until it is closed
  }
}
