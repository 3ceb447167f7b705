// The story's figures as one scrolls: which one stands, where the arrow points, where Ğ is; and the wall. All of it is there without.
const RING = 214;
const LIMIT = 190;
document.documentElement.classList.add("live");
const steps = [...document.querySelectorAll(".step")];
for (const act of document.querySelectorAll(".act")) act.style.setProperty("--steps", act.querySelectorAll(".step").length);

/** The part of the ring that sign k owns: `won` names the winner of every half degree. */
function arc(won, k) {
  const first = won.findIndex((winner, n) => winner === k && won.at(n - 1) !== k);
  const count = won.filter((winner) => winner === k).length;
  const spot = (n) => [Math.cos, Math.sin].map((f) => (RING * f(((n - 0.5) * Math.PI) / 360)).toFixed(1)).join(" ");
  return count ? `M${spot(first)}A${RING} ${RING} 0 ${Number(count > 360)} 1 ${spot(first + count)}` : "";
}

/** Draw signs at `points`, [x, y] with y downwards, and the picture's direction `look`. */
function draw(figure, points, look) {
  const best = (a) => points.reduce((most, [x, y], k) => {
    const far = x * Math.cos(a) + y * Math.sin(a);
    return far > most[1] ? [k, far] : most;
  }, [0, -Infinity]);
  const won = Array.from({ length: 720 }, (_, n) => best((n * Math.PI) / 360)[0]);
  points.forEach((_, k) => figure.querySelector(`[data-arc="${k}"]`).setAttribute("d", arc(won, k)));
  const corners = [...new Set(won)];
  figure.querySelector(".hull").setAttribute("points", corners.map((k) => points[k].join(",")).join(" "));
  const [winner] = best(look);
  const [x, y] = points[winner];
  const set = (name, values) => ["x1", "y1", "x2", "y2"].forEach((key, n) => figure.querySelector(name).setAttribute(key, values[n].toFixed(1)));
  const [dx, dy] = [150 * Math.sin(look), -150 * Math.cos(look)];
  set(".front", [x - dx, y - dy, x + dx, y + dy]);
  const eye = [RING * Math.cos(look), RING * Math.sin(look)];
  set(".look", [0, 0, ...eye]);
  ["cx", "cy"].forEach((key, n) => figure.querySelector(".eye").setAttribute(key, eye[n].toFixed(1)));
  points.forEach((point, k) => {
    const dot = figure.querySelector(`[data-k="${k}"]`);
    dot.setAttribute("transform", `translate(${point.join(" ")})`);
    dot.classList.toggle("gone", !corners.includes(k));
  });
  return corners;
}

const placesIn = (figure) => [...figure.querySelectorAll(".dot")].map((dot) => dot.getAttribute("transform").match(/-?[\d.]+/g).map(Number));
const [alive, dead, free] = ["alive", "dead", "free"].map((name) => document.querySelector(`.${name}`));
const [outside, inside] = [placesIn(alive), placesIn(dead)];

/** Each step's figure follows the reader: `done` goes from 0 to 1 while its words pass. */
function follow() {
  const middle = innerHeight / 2;
  for (const step of steps) {
    const { top, height } = step.querySelector(innerWidth < 860 ? "figure" : ".words").getBoundingClientRect(); // on a phone they follow each other
    const done = Math.min(Math.max((middle - top) / height, 0), 1);
    step.classList.toggle("on", top <= middle && top + height > middle);
    const nearest = step === steps[0] ? top > middle : step.matches(".act > :last-child") && top + height <= middle;
    if (nearest) step.classList.add("on");
    if (step.contains(alive)) draw(alive, outside, -0.72 + 2 * Math.PI * done);
    if (step.contains(dead)) {
      const way = Math.min(done / 0.5, 1);
      draw(dead, outside.map(([x, y], k) => [x + way * (inside[k][0] - x), y + way * (inside[k][1] - y)]), -0.72 + 4 * Math.max(done - 0.5, 0) * Math.PI);
    }
  }
  if (wall.getBoundingClientRect().top < middle) wall.classList.add("lit");
  waiting = false;
}
let waiting = false;
const later = () => waiting || ((waiting = true), requestAnimationFrame(follow));

// Drag: mouse, finger, arrow keys
const held = placesIn(free);
for (const dot of free.querySelectorAll(".dot")) {
  const k = Number(dot.dataset.k);
  const name = dot.textContent;
  for (const [key, value] of Object.entries({ tabindex: 0, role: "button", "aria-roledescription": "draggable point" })) dot.setAttribute(key, value);
  const put = (x, y) => {
    held[k] = [x, y].map((value) => Math.max(-LIMIT, Math.min(LIMIT, Math.round(value))));
    const corners = draw(free, held, Math.atan2(held[k][1], held[k][0]));
    for (const other of free.querySelectorAll(".dot"))
      other.setAttribute("aria-label", `${other.textContent}, ${corners.includes(Number(other.dataset.k)) ? "can win" : "can never win"}`);
  };
  const at = (event) => {
    const box = free.querySelector("svg").getBoundingClientRect();
    const unit = 480 / Math.min(box.width, box.height);
    return [(event.clientX - box.left - box.width / 2) * unit, (event.clientY - box.top - box.height / 2) * unit];
  };
  dot.addEventListener("pointerdown", (event) => (event.preventDefault(), dot.focus({ preventScroll: true }), dot.setPointerCapture(event.pointerId)));
  dot.addEventListener("pointermove", (event) => dot.hasPointerCapture(event.pointerId) && put(...at(event)));
  dot.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    put(held[k][0] + 10 * way[0], held[k][1] + 10 * way[1]);
  });
  dot.setAttribute("aria-label", `${name}, ${dot.classList.contains("gone") ? "can never win" : "can win"}`);
}

// The wall is text: the sign under the pointer is asked of the browser, and a ring laid around it.
const wall = document.getElementById("wall");
const signs = document.getElementById("signs");
const told = document.getElementById("told");
const known = JSON.parse(document.getElementById("known").textContent);
const ring = Object.assign(document.createElement("div"), { className: "ring", hidden: true });
signs.append(ring);
signs.tabIndex = 0;
signs.setAttribute("role", "application");
signs.setAttribute("aria-label", "The wall of signs: left and right step from one to the next");
const texts = [...signs.querySelectorAll("p")].flatMap((p) => [...p.childNodes].map((node) => node.firstChild ?? node));
let here = null;

/** Show the sign at an offset of a text. */
function show(node, offset) {
  const folded = node.parentElement.closest("details");
  if (folded) folded.open = true;
  const low = /[\udc00-\udfff]/.test(node.data[offset] ?? "");
  const start = low ? offset - 1 : offset;
  const sign = String.fromCodePoint(node.data.codePointAt(start) ?? 0);
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, start + sign.length);
  const [box, frame] = [range.getBoundingClientRect(), signs.getBoundingClientRect()];
  Object.assign(ring.style, { left: `${box.left - frame.left - 3}px`, top: `${box.top - frame.top - 2}px`, width: `${box.width + 5}px`, height: `${box.height + 4}px` });
  ring.hidden = false;
  here = { node, start, sign };
  const lost = node.parentElement.tagName === "B";
  const script = node.parentElement.closest("p").dataset.script;
  const more = [];
  if (known.ceiling[sign]) more.push(`Its probability never exceeds ${known.ceiling[sign]}%.`);
  if (known.read[sign]) more.push(`Drawn as ${known.read[sign][0]}, it is read ${known.read[sign][1].trim() || "as nothing"}.`);
  const say = document.createElement("span");
  say.append(Object.assign(document.createElement("span"), { className: lost ? "dead" : "", textContent: lost ? "can never be said. " : "can be said. " }));
  say.append(`${script}, U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}. ${more.join(" ")}`);
  told.replaceChildren(Object.assign(document.createElement("strong"), { textContent: sign }), say);
}

/** The text and offset at a place of the window, of the wall only. */
function under(x, y) {
  const spot = document.caretPositionFromPoint?.(x, y);
  const range = spot ? null : document.caretRangeFromPoint?.(x, y);
  const [node, offset] = spot ? [spot.offsetNode, spot.offset] : [range?.startContainer, range?.startOffset];
  if (!node || node.nodeType !== Node.TEXT_NODE || !signs.contains(node) || !node.parentElement.closest("p")) return null;
  for (const start of [offset, offset - 1]) { // the caret stands before or behind the sign
    const range = document.createRange();
    if (start < 0 || start >= node.length) continue;
    range.setStart(node, start);
    range.setEnd(node, start + 1);
    const box = range.getBoundingClientRect();
    if (x >= box.left - 3 && x <= box.right + 3) return [node, start];
  }
  return null;
}

for (const kind of ["pointermove", "click"])
  signs.addEventListener(kind, (event) => {
    const found = under(event.clientX, event.clientY);
    if (found) show(...found);
  });
signs.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!way) return;
  event.preventDefault();
  if (!here) return show(texts[0], 0);
  const next = here.start + (way > 0 ? here.sign.length : -1);
  const other = texts[texts.indexOf(here.node) + way];
  if (next >= 0 && next < here.node.length) show(here.node, next);
  else if (other) show(other, way > 0 ? 0 : other.length - 1);
  ring.scrollIntoView({ block: "nearest" });
});
document.getElementById("find").addEventListener("input", ({ target }) => {
  const written = [...new Set(target.value.normalize("NFC").replace(/\s/g, ""))];
  const places = new Map(written.map((sign) => [sign, texts.find((text) => text.data.includes(sign))]));
  const lost = written.filter((sign) => places.get(sign)?.parentElement.tagName === "B");
  const [sign] = [...lost, ...written];
  if (places.get(sign) && (lost.length || written.length === 1)) show(places.get(sign), places.get(sign).data.indexOf(sign));
  if (written.length === 1 && places.get(sign)) return void ring.scrollIntoView({ block: "center" });
  const missing = written.filter((each) => !places.get(each));
  const say = [`${lost.join(" ") || "No letter of it"} ${lost.length ? "can never be said" : "is lost"}.`];
  if (missing.length) say.push(`Not on its list: ${missing.join(" ")}`);
  told.replaceChildren(written.length ? say.join(" ") : "");
});

addEventListener("scroll", later, { passive: true });
addEventListener("resize", later);
follow();
