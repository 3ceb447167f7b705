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
    const address = frame.src.split("#")[0];
    if (frame.src !== `${address}#${theme}`) frame.src = `${address}#${theme}`;
  }
};
new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
document.addEventListener("DOMContentLoaded", follow);
