// Help for first use: a tour that points at the parts of a figure one after the other, and missions with a score.

import { button, html, say } from "./stage.js";

/**
 * `stops` are [element, sentence]; `missions` are [sentence, met], where met(facts) tells whether a drawn state fulfils one. A mission counts
 * when a state of the reader's own making fulfils it, after one that did not: `rest()` before a preset, and `check(facts)` after each drawing.
 */
export function guide(page, stops, missions) {
  const tour = makeTour(page, stops);
  const score = html("summary");
  const items = missions.map(([text]) => html("li", {}, text));
  const told = html("p", { class: "sg-note", role: "status" });
  const list = html("details", { class: "sg-missions" }, score, html("ol", {}, ...items), told);
  page.el.append(list);
  const done = new Set();
  let before = null; // which missions the last state fulfilled
  const count = () => say(score, `Missions: ${done.size} of ${missions.length}`);
  count();
  return {
    rest: () => (before = null),
    check(facts) {
      const met = missions.map(([, test]) => Boolean(test(facts)));
      const fresh = before ? met.flatMap((now, n) => (now && !before[n] && !done.has(n) ? [n] : [])) : [];
      before = met;
      for (const n of fresh) {
        done.add(n);
        items[n].classList.add("sg-done");
        items[n].append(" — done");
      }
      if (fresh.length) say(told, done.size === missions.length ? "All missions done." : `Mission ${fresh[0] + 1} done.`);
      count();
    },
    hide(veiled) {
      list.hidden = tour.root.hidden = veiled;
      if (veiled) tour.close();
    },
  };
}

function makeTour(page, stops) {
  const words = html("p", { role: "status" });
  const box = html("div", { class: "sg-tour", hidden: "" }, words);
  let at = -1;
  const go = (to) => {
    stops[at]?.[0].classList.remove("sg-pointed");
    at = to < stops.length ? to : -1;
    box.hidden = at < 0;
    root.setAttribute("aria-expanded", String(at >= 0));
    if (at < 0) return;
    const [element, text] = stops[at];
    element.classList.add("sg-pointed");
    say(words, `${at + 1} of ${stops.length}. ${text}`);
    say(next, at + 1 < stops.length ? "Next" : "Done");
  };
  const root = button(page.buttons, "Tour", () => (go(0), next.focus()), { "aria-expanded": "false", title: "What is what in this figure" });
  const close = () => {
    if (at < 0) return;
    go(stops.length);
    root.focus();
  };
  const row = html("div", { class: "sg-bar" });
  const next = button(row, "Next", () => (at + 1 < stops.length ? go(at + 1) : close()));
  button(row, "Close", close);
  box.addEventListener("keydown", (event) => event.key === "Escape" && close());
  box.append(row);
  page.buttons.after(box);
  return { root, close };
}
