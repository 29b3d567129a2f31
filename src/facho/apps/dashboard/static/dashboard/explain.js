// The panel that explains a delay: the page of the node, shown in the page of its OLT.

import { tick } from "./time.js";

let shown = null;

async function load(url) {
  const answer = await fetch(url, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok || answer.redirected) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("explain");
  if (!fresh || shown !== url) return false;
  // The panel is fetched separately, so it is not a region of this page.
  fresh.removeAttribute("data-region");
  const body = document.querySelector("#explain-panel .explain-body");
  body.replaceChildren(document.adoptNode(fresh));
  tick(body);
  return true;
}

async function open(link) {
  const panel = document.getElementById("explain-panel");
  shown = link.href;
  if (!(await load(link.href))) {
    location.assign(link.href);
    return;
  }
  panel.hidden = false;
  panel.scrollIntoView({ block: "nearest" });
  panel.querySelector("[data-close]").focus({ preventScroll: true });
}

function close(panel) {
  shown = null;
  panel.hidden = true;
}

export function start() {
  const panel = document.getElementById("explain-panel");
  if (!panel) return;
  document.addEventListener("click", (event) => {
    if (event.target.closest("#explain-panel [data-close]")) close(panel);
    const link = event.target.closest("a[data-explain]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(link);
  });
  document.addEventListener("facho:refreshed", () => {
    if (shown) load(shown);
  });
}
