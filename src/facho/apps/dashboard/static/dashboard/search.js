// The search box of the top bar: results while typing. Without this script, it is a form.

import { logInAgain } from "./feed.js";
import { text } from "./time.js";

// Pause in typing before a search, in milliseconds.
const PAUSE = 150;

const form = document.querySelector("form.search");
const box = form?.querySelector("input[role=combobox]");
const list = form?.querySelector(".suggestions");
const status = form?.querySelector("[role=status]");

let timer = null;
let underway = null;

const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

/** Search for the text of the box, and show the results below it. */
async function search() {
  underway?.abort();
  const wanted = box.value.trim();
  if (!wanted) {
    close();
    return;
  }
  const mine = (underway = new AbortController());
  try {
    const url = `${form.dataset.suggestions}?q=${encodeURIComponent(wanted)}`;
    // Accepts HTML as a navigation does: the session counts it as an activity of the user.
    const answer = await fetch(url, { headers: { Accept: "text/html" }, signal: mine.signal, cache: "no-store" });
    if (answer.redirected) logInAgain();
    if (!answer.ok || answer.redirected) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    if (mine === underway && form.contains(document.activeElement)) show(found);
  } catch {
    if (mine.signal.aborted) return;
    close();
    status.textContent = text.offline;
  }
}

function show(found) {
  const results = found.querySelector("[role=listbox]");
  list.replaceChildren(...found.childNodes);
  list.hidden = false;
  box.setAttribute("aria-expanded", String(results !== null));
  box.removeAttribute("aria-activedescendant");
  status.textContent = results ? results.dataset.status : list.textContent.trim();
}

function close() {
  clearTimeout(timer);
  underway?.abort();
  underway = null;
  list.hidden = true;
  list.replaceChildren();
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
  status.textContent = "";
}

/** Choose the next or the previous result. Before the first one and after the last one is the box itself. */
function move(step) {
  const all = options();
  if (!all.length) {
    if (list.hidden) search();
    return;
  }
  const present = all.indexOf(chosen());
  const next = present < 0 ? (step > 0 ? 0 : all.length - 1) : present + step;
  chosen()?.setAttribute("aria-selected", "false");
  box.removeAttribute("aria-activedescendant");
  if (!all[next]) return;
  all[next].setAttribute("aria-selected", "true");
  all[next].scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", all[next].id);
}

function pressed(event) {
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter" && chosen()) {
    event.preventDefault();
    chosen().click();
  } else if (event.key === "Escape" && !list.hidden) {
    // The text stays; a second Escape removes it.
    event.preventDefault();
    close();
  }
}

/** Handle a key pressed anywhere: a slash goes to the box, except where people write. */
function pressedAnywhere(event) {
  const writes = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || writes) return;
  event.preventDefault();
  box.focus();
  box.select();
}

export function start() {
  if (!form) return;
  document.addEventListener("keydown", pressedAnywhere);
  box.addEventListener("keydown", pressed);
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  form.addEventListener("submit", close);
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget)) close();
  });
}
