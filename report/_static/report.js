// A framed explorer tells its height and follows the page's theme.
window.addEventListener("message", (event) => {
  const height = Number(event.data && event.data.softgeomHeight);
  if (!Number.isFinite(height)) return;
  for (const frame of document.querySelectorAll("iframe.explorer"))
    if (frame.contentWindow === event.source) frame.style.height = `${Math.ceil(height)}px`;
});
const follow = () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  for (const frame of document.querySelectorAll("iframe.explorer")) {
    const address = `${new URL(frame.dataset.src, location.href)}#${theme}`;
    if (frame.src !== address) frame.src = address;
  }
};
new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
document.addEventListener("DOMContentLoaded", follow);

// The register: filters by paper, kind and verdict, and a claim that the address names stands open.
const openNamed = () => {
  const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named && named.matches("details")) named.open = true;
};
const filters = () => {
  const place = document.getElementById("claim-filters");
  if (!place) return;
  const entries = [...document.querySelectorAll("details.claim")];
  const chosen = {};
  const count = document.createElement("output");
  count.setAttribute("aria-live", "polite");
  const apply = () => {
    for (const entry of entries)
      entry.hidden = Object.entries(chosen).some(([key, value]) => value && entry.dataset[key] !== value);
    const visible = entries.filter((entry) => !entry.hidden);
    count.textContent = `${visible.length} of ${entries.length} rows`;
    for (const section of document.querySelectorAll("section section"))
      section.hidden = !visible.some((entry) => section.contains(entry));
  };
  for (const [key, label] of [["paper", "Paper"], ["kind", "Kind"], ["verdict", "Verdict"]]) {
    const select = document.createElement("select");
    const values = [...new Set(entries.map((entry) => entry.dataset[key]))];
    select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    select.addEventListener("change", () => { chosen[key] = select.value; apply(); });
    const field = document.createElement("label");
    field.append(`${label} `, select);
    place.append(field);
  }
  place.append(count);
  apply();
};
// Two of the theme's names: a chapter's fold has none, and the search button's leaves out what is written on it.
const nameControls = () => {
  for (const fold of document.querySelectorAll("summary:has(> .toctree-toggle)"))
    fold.setAttribute("aria-label", `Pages of ${fold.closest("li").querySelector("a").textContent}`);
  for (const button of document.querySelectorAll("button.search-button-field")) button.removeAttribute("aria-label");
};
// A table wider than the page scrolls by itself; the keyboard must reach it to scroll it.
const reachTables = () => {
  for (const table of document.querySelectorAll("table.docutils, .cell_output table"))
    if (table.scrollWidth > table.clientWidth) {
      table.tabIndex = 0;
      table.setAttribute("aria-label", "a wide table: scroll with the arrow keys");
    }
};
// A figure opens at its full size, wider than a phone: a click on it, or the button that the keyboard reaches.
const enlargeFigures = () => {
  const pictures = [...document.querySelectorAll(".bd-article img")].filter((image) => image.alt && !image.closest("a"));
  if (!pictures.length) return;
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  for (const image of pictures) {
    const open = () => {
      const large = image.cloneNode();
      large.removeAttribute("style");
      large.removeAttribute("width");
      large.removeAttribute("height");
      dialog.setAttribute("aria-label", image.alt);
      dialog.replaceChildren(close, large);
      dialog.showModal();
    };
    image.addEventListener("click", open);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.textContent = "Enlarge";
    button.setAttribute("aria-label", `Enlarge the figure: ${image.alt.slice(0, 80)}`);
    button.addEventListener("click", open);
    image.after(button);
  }
};
document.addEventListener("DOMContentLoaded", () => { nameControls(); filters(); openNamed(); reachTables(); enlargeFigures(); });
window.addEventListener("hashchange", openNamed);

// The search shows where a word stands. The texts come as a script, which a page opened from a folder may load, unlike other pages.
const excerpts = () => {
  const results = document.getElementById("search-results");
  const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) || [];
  if (!results || !words.length) return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const show = (item) => {
    const link = item.querySelector("a[href]");
    if (!link || item.querySelector(".excerpt")) return;
    const page = decodeURIComponent(link.href.replace(/[?#].*/, "").slice(root.href.length)).replace(/\.html$/, "");
    const text = (window.softgeomExcerpts || {})[page];
    if (!text) return;
    const low = text.toLowerCase();
    const found = words.flatMap((word) => [word, word.slice(0, Math.max(4, word.length - 3))]).map((part) => [low.indexOf(part), part.length]);
    const [at, length] = found.find(([place]) => place >= 0) || [0, 0];
    const start = at <= 70 ? 0 : text.indexOf(" ", at - 70) + 1;
    const excerpt = document.createElement("p");
    excerpt.className = "excerpt";
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + length);
    excerpt.append(start ? "… " : "", text.slice(start, at), mark, text.slice(at + length, at + length + 130), " …");
    item.append(excerpt);
  };
  const all = () => results.querySelectorAll("ul.search > li").forEach(show);
  const script = document.createElement("script");
  script.src = new URL("_static/excerpts.js", root);
  script.addEventListener("load", () => { new MutationObserver(all).observe(results, { childList: true, subtree: true }); all(); });
  document.head.append(script);
};
document.addEventListener("DOMContentLoaded", excerpts);
