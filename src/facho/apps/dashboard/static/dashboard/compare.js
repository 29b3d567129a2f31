// Times of the comparison in the user's zone. The address has them with their zone, so a colleague sees the same.

import { now } from "./time.js";

const HOUR = 3600000;
const form = document.getElementById("moments");
const inputs = [form.elements.before, form.elements.after];

/** A time as in the address: without fractions of a second. */
const inAddress = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** A time as `datetime-local` has it. */
function local(ms) {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

/** The time of an hour of the day, so many days ago. */
function hourOf(daysAgo, hour) {
  const at = new Date(now());
  at.setDate(at.getDate() - daysAgo);
  return at.setHours(hour, 0, 0, 0);
}

// As in compare.py, at the time of the click.
const PRESETS = {
  evening: () => [hourOf(1, 22), now()],
  night: () => (now() >= hourOf(0, 6) ? [hourOf(1, 22), hourOf(0, 6)] : [hourOf(2, 22), hourOf(1, 6)]),
  hour: () => [now() - HOUR, now()],
  day: () => [now() - 24 * HOUR, now()],
  week: () => [now() - 7 * 24 * HOUR, now()],
};

for (const input of inputs) {
  const at = Date.parse(input.dataset.moment ?? "");
  if (Number.isNaN(at)) continue;
  input.value = input.dataset.shown = local(at);
}

form.addEventListener("formdata", ({ formData }) => {
  for (const input of inputs) {
    if (!input.value) continue;
    // An unchanged time keeps its seconds.
    const at = input.value === input.dataset.shown ? input.dataset.moment : input.value;
    formData.set(input.name, inAddress(Date.parse(at)));
  }
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});

for (const link of document.querySelectorAll("a[data-preset]")) {
  link.addEventListener("click", () => {
    const url = new URL(link.href);
    const [before, after] = PRESETS[link.dataset.preset]();
    url.searchParams.set("before", inAddress(before));
    url.searchParams.set("after", inAddress(after));
    link.href = url;
  });
}
