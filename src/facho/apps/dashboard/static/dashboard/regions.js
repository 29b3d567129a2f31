// Keeps a page current: fetches it again and replaces the regions that changed.

import { logInAgain } from "./feed.js";
import { tick } from "./time.js";

// Notifications come in bursts. Minimum pause between two fetches, and as a multiple of the duration of a fetch.
const SHORTEST_PAUSE = 2000;
const COST_FACTOR = 10;
// Without notifications the page is still fetched after this time, in case the stream is broken.
const LONGEST_PAUSE = 30000;

let timer = null;
let underway = null;
let isDue = false;
let lastFetch = 0;
let lastCost = 0;
let signatures = new Map();

const regions = (root) => root.querySelectorAll("[data-region]");

/** Return the content of a region without its ages, which are updated separately, and without tokens of forms. */
const signature = (region) =>
  region.outerHTML.replace(/(<time\b[^>]*>)[^<]*/g, "$1").replace(/<input[^>]* name="csrfmiddlewaretoken"[^>]*>/g, "");

/** Handle a notification about an OLT: fetch the page again soon, if it shows that OLT. */
export function changed({ olt_id: olt }) {
  const shown = document.body.dataset.olt;
  if (!shown || String(olt) === shown) refreshSoon();
}

export function refreshSoon() {
  // A page about the past, such as a comparison, has no regions.
  if (!regions(document).length) return;
  // The answer to a form is not at its address.
  if ("posted" in document.body.dataset) return;
  isDue = true;
  if (timer || underway || document.hidden) return;
  const pause = Math.max(SHORTEST_PAUSE, COST_FACTOR * lastCost);
  timer = setTimeout(refresh, Math.max(0, lastFetch + pause - performance.now()));
}

async function refresh() {
  timer = null;
  // Another view is being fetched. The present address is the old one, and would replace it.
  if (underway) {
    timer = setTimeout(refresh, SHORTEST_PAUSE);
    return;
  }
  isDue = false;
  await load(location.href);
  if (isDue) refreshSoon();
}

/** Go to another view of the same page, such as another sort order, without a full load. */
export async function go(url) {
  underway?.abort();
  // Accepts HTML as a navigation does: the session counts it as an activity of the user.
  if (await load(url, { Accept: "text/html" })) history.pushState(null, "", url);
  else location.assign(url);
}

async function load(url, headers = {}) {
  const mine = (underway = new AbortController());
  lastFetch = performance.now();
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { headers, signal: mine.signal, cache: "no-store" });
    // Pages redirect to the login only.
    if (answer.redirected) logInAgain();
    if (!answer.ok || answer.redirected) return false;
    swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    return true;
  } catch {
    // The banner already shows that Facho cannot be reached. An aborted fetch was replaced by another one.
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
    const current = signature(fresh);
    if (!present || signatures.get(fresh.id) === current || isSelectedIn(present) || isEdited(present)) continue;
    signatures.set(fresh.id, current);
    replace(present, document.adoptNode(fresh));
  }
  document.dispatchEvent(new Event("facho:refreshed"));
}

/** Replace a region; open details stay open, fields with an id keep what the user entered, and the focus is kept. */
function replace(present, fresh) {
  for (const field of present.querySelectorAll("select[id], input[id]:not([type=checkbox])")) {
    const again = fresh.querySelector(`#${CSS.escape(field.id)}`);
    if (again) again.value = field.value;
  }
  for (const box of present.querySelectorAll("input[type=checkbox][id]:checked")) {
    const again = fresh.querySelector(`#${CSS.escape(box.id)}`);
    if (again) again.checked = true;
  }
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

/** Return whether the user has selected text in a region. It is not replaced then. */
function isSelectedIn(region) {
  const selection = getSelection();
  return selection && !selection.isCollapsed && selection.anchorNode && region.contains(selection.anchorNode);
}

/** Return whether the user has written in a region. It is not replaced then. */
function isEdited(region) {
  return [...region.querySelectorAll("textarea")].some((field) => field.value !== field.defaultValue);
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
    // The port filter belongs to the OLT, so another OLT resets it.
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
    if (performance.now() - lastFetch > LONGEST_PAUSE) refreshSoon();
  }, LONGEST_PAUSE / 6);
}
