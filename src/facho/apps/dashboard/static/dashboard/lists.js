// Lists: folds the filters on narrow screens, and counts ticked rows.

import { fill } from "./time.js";

const NARROW = matchMedia("(max-width: 760px)");

function foldFilters() {
  const box = document.querySelector(".filter-box");
  if (box) box.open = !NARROW.matches;
}

const boxesOf = (form) => [...form.querySelectorAll("td.tick input")];

function count(form) {
  const boxes = boxesOf(form);
  const ticked = boxes.filter((box) => box.checked).length;
  const all = form.querySelector("[data-tick-all]");
  all.checked = ticked > 0 && ticked === boxes.length;
  all.indeterminate = ticked > 0 && ticked < boxes.length;
  const bar = form.querySelector("[data-ticked]");
  bar.hidden = ticked === 0 && bar.dataset.ticked !== "always";
  const shown = bar.querySelector("[data-ticked-count]");
  if (shown) shown.textContent = fill(shown.dataset.text, { n: ticked });
  // "All that match" needs no ticks.
  const rest = bar.querySelector("[data-all-matching]");
  if (rest) rest.hidden = !all.checked;
}

function countAll() {
  document.querySelectorAll("form[data-ticks]").forEach(count);
  document.querySelectorAll("[data-action-choice]").forEach(showChoices);
}

/** Show the choice of a tag or site only for the actions that need it. */
function showChoices(select) {
  for (const each of select.form.querySelectorAll("[data-for]")) {
    each.hidden = !each.dataset.for.split(" ").includes(select.value);
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-action-choice]")) showChoices(event.target);
  const form = event.target.closest("form[data-ticks]");
  if (!form) return;
  if (event.target.matches("[data-tick-all]")) {
    for (const box of boxesOf(form)) box.checked = event.target.checked;
  }
  count(form);
});

document.addEventListener("facho:refreshed", countAll);
NARROW.addEventListener("change", foldFilters);
foldFilters();
countAll();
