// Load of the pool: the last minutes live, or days from the database.

import { drawChart } from "./chart.js";
import { boot, formats, now, text } from "./time.js";

const points = boot.busy ? boot.busy.minutes.slice() : [];
const container = document.getElementById("busy-chart");
const HOUR = 3600000;
// Charts of days are reloaded less often.
const RELOAD_AFTER = 60000;

// Range in hours; 0 is live.
let hours = 0;
let days = null;
let loadedAt = 0;

/** Return the mean of the minute at each sample. Samples are a second apart and end at `at`. */
function means(samples, at) {
  let sum = 0;
  return samples.map((sample, position) => {
    sum += sample;
    return [at - (samples.length - 1 - position) * 1000, sum / (position + 1)];
  });
}

function liveMinutes() {
  const to = Math.max(now(), points.at(-1)?.[0] ?? 0);
  const from = to - boot.busy.span * 1000;
  while (points.length && points[0][0] < from) points.shift();
  return { from, to, gap: 150000, series: [{ name: "busy", label: text.chart.busy, points }] };
}

/** A point covers several minutes: their mean, and the busiest one. */
function pastDays() {
  const series = (name, value) => ({ name, label: text.chart[name], points: days.points.map((point) => [Date.parse(point.at), point[value]]) });
  const both = [series("busy", "busy_percentage"), series("busiest", "busiest")];
  return { from: Date.parse(days.since), to: Date.parse(days.until), gap: 2.5 * days.step * 1000, series: days.step > 60 ? both : [both[0]] };
}

function redraw() {
  if (hours && !days?.points.length) {
    note(days ? text.noPool : "");
    return;
  }
  const [above, until] = [boot.busy.above, boot.busy.until];
  drawChart(container, {
    ...(hours ? pastDays() : liveMinutes()),
    low: 0,
    high: 100,
    limits: [
      { value: above, label: `${above} %`, name: "bad" },
      { value: until, label: `${until} %`, name: "calm", under: true },
    ],
    area: true,
    unit: "%",
    xLabel: hours > 48 ? formats.day : formats.hour,
    tip: formats.full,
  });
}

function note(sentence) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = sentence;
  container.replaceChildren(element);
}

async function load() {
  const wanted = hours;
  loadedAt = performance.now();
  const since = new Date(now() - wanted * HOUR).toISOString();
  try {
    const answer = await fetch(`${container.dataset.url}?since=${encodeURIComponent(since)}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const loaded = await answer.json();
    // Another range may have been chosen meanwhile.
    if (wanted !== hours) return;
    days = loaded;
    redraw();
  } catch {
    if (wanted === hours && !days) note(text.offline);
  }
}

function choose(button, buttons) {
  hours = Number(button.dataset.busyHours);
  days = null;
  for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
  redraw();
  if (hours) load();
}

/** Add a snapshot and draw. */
export function drawBusy({ at, stats }) {
  if (!container) return;
  const time = at ? Date.parse(at) : null;
  const newest = points.at(-1)?.[0] ?? 0;
  if (time !== null && time > newest) {
    // After a pause, or at the start, the samples fill the missed minute.
    const missed = time - newest > 2000 ? means(stats.samples, time).filter(([ms]) => ms > newest) : [];
    points.push(...missed.slice(0, -1), [time, stats.busy_percentage]);
  }
  if (!hours) redraw();
  else if (performance.now() - loadedAt > RELOAD_AFTER) load();
}

if (container) {
  new ResizeObserver(redraw).observe(container);
  const buttons = document.querySelectorAll("[data-busy-hours]");
  for (const button of buttons) button.addEventListener("click", () => choose(button, buttons));
}
