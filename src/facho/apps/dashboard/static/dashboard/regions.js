// Keeps a page current: fetches the same page again and puts in the regions that changed.

import { tick } from "./time.js";

// News comes in bursts; a page is fetched at most this often, and never so often that fetching is all it does.
const SHORTEST_PAUSE = 2000;
const COST_FACTOR = 10;
// Without news nothing changes, unless the news is what is broken.
const WITHOUT_NEWS = 30000;

let timer = null;
let underway = null;
let isDue = false;
let lastFetch = 0;
let lastCost = 0;
let signatures = new Map();

const regions = (root) => root.querySelectorAll("[data-region]");

/** What a region says, apart from the ages in it, which tick on their own. */
const signature = (region) => region.outerHTML.replace(/(<time\b[^>]*>)[^<]*/g, "$1");

/** Note news of an OLT: the page is fetched again soon, if it shows that OLT. */
export function news({ olt_id: olt }) {
  const shown = document.body.dataset.olt;
  if (!shown || String(olt) === shown) refreshSoon();
}

export function refreshSoon() {
  isDue = true;
  if (timer || underway || document.hidden) return;
  const pause = Math.max(SHORTEST_PAUSE, COST_FACTOR * lastCost);
  timer = setTimeout(refresh, Math.max(0, lastFetch + pause - performance.now()));
}

async function refresh() {
  timer = null;
  isDue = false;
  await load(location.href);
  if (isDue) refreshSoon();
}

/** Go to another view of the same page, such as another sort order, without loading it whole. */
export async function go(url) {
  underway?.abort();
  if (await load(url)) history.pushState(null, "", url);
  else location.assign(url);
}

async function load(url) {
  const mine = (underway = new AbortController());
  lastFetch = performance.now();
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { signal: mine.signal, cache: "no-store" });
    // Only a login page answers from another address.
    if (answer.redirected) location.reload();
    if (!answer.ok || answer.redirected) return false;
    swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    return true;
  } catch {
    // The banner already says that Facho cannot be reached; an aborted fetch has a successor.
    return mine.signal.aborted;
  } finally {
    lastCost = performance.now() - lastFetch;
    if (underway === mine) underway = null;
    document.body.removeAttribute("aria-busy");
  }
}

function swap(page) {
  document.title = page.title;
  document.body.dataset.olt = page.body.dataset.olt ?? "";
  for (const fresh of regions(page)) {
    const present = document.getElementById(fresh.id);
    const said = signature(fresh);
    if (!present || signatures.get(fresh.id) === said || isSelectedIn(present)) continue;
    signatures.set(fresh.id, said);
    replace(present, document.adoptNode(fresh));
  }
  document.dispatchEvent(new Event("facho:refreshed"));
}

/** Put in a region, but leave open what was open and the focus where it was. */
function replace(present, fresh) {
  for (const details of present.querySelectorAll("details[open]")) {
    const again = fresh.querySelector(`#${CSS.escape(details.id)}`);
    if (again) again.open = true;
  }
  const focused = present.contains(document.activeElement) ? position(present, document.activeElement) : -1;
  present.replaceWith(fresh);
  tick(fresh);
  if (focused >= 0) focusable(fresh)[focused]?.focus({ preventScroll: true });
}

const focusable = (root) => [root, ...root.querySelectorAll("a, button, summary, select, input")];
const position = (root, element) => focusable(root).indexOf(element);

/** Whoever is copying a serial number does not want it to vanish. */
function isSelectedIn(region) {
  const selection = getSelection();
  return selection && !selection.isCollapsed && selection.anchorNode && region.contains(selection.anchorNode);
}

function formUrl(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  return `${location.pathname}${query.size ? `?${query}` : ""}`;
}

function watchForm(form) {
  let typing = null;
  const send = () => {
    clearTimeout(typing);
    go(formUrl(form));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  form.addEventListener("input", (event) => {
    clearTimeout(typing);
    // A port belongs to an OLT: with another OLT it means another port, or none.
    if (event.target.name === "olt" && form.elements.port) form.elements.port.value = "";
    if (event.target.type === "search") typing = setTimeout(send, 300);
    else send();
  });
}

export function start() {
  signatures = new Map([...regions(document)].map((region) => [region.id, signature(region)]));
  document.querySelectorAll("form[data-live-form]").forEach(watchForm);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-nav]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(link.href);
  });
  window.addEventListener("popstate", () => location.reload());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refreshSoon();
  });
  setInterval(() => {
    if (performance.now() - lastFetch > WITHOUT_NEWS) refreshSoon();
  }, WITHOUT_NEWS / 6);
}
