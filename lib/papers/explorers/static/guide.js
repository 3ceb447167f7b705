// Help for first use: what is what in a figure, and missions with a score.

import { html, say } from "./stage.js";

/**
 * `parts` are sentences; `missions` are [sentence, met], where met(facts) tells whether a drawn state fulfils one. A mission counts
 * when a state of the reader's own making fulfils it, after one that did not: `rest()` before a preset, and after each drawing `check(facts)`, or
 * `check(null)` while the figure is hidden.
 */
export function guide(page, parts, missions) {
  const legend = html("details", {}, html("summary", {}, "What is what"), html("ul", {}, ...parts.map((text) => html("li", {}, text))));
  const score = html("summary");
  const items = missions.map(([text]) => html("li", {}, text));
  const told = html("p", { class: "sg-note", role: "status" });
  const list = html("details", { class: "sg-missions" }, score, html("ol", {}, ...items), told);
  page.more.append(legend, list);
  const done = new Set();
  let before = null; // which missions the last state fulfilled
  const count = () => say(score, `Missions: ${done.size} of ${missions.length}`);
  count();
  return {
    rest: () => (before = null),
    check(facts) {
      list.hidden = legend.hidden = !facts;
      if (!facts) return;
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
  };
}
