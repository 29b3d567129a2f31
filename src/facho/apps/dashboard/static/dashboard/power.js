// The power of one ONU over time.

import { drawChart } from "./chart.js";
import { boot, formats, text } from "./time.js";

const container = document.getElementById("power-chart");
const legend = document.getElementById("power-legend");
const NAMES = ["rx_dbm", "olt_rx_dbm", "tx_dbm"];
// The sent power is 25 dB above the received ones. Shown together, their lines would be flat.
const hidden = new Set(["tx_dbm"]);
const HOUR = 3600000;
// Minimum time between two loads, because a month has many points.
const RELOAD_AFTER = 20000;

let hours = 24;
let data = null;
let loadedAt = 0;

function note(sentence) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = sentence;
  container.replaceChildren(element);
}

/** Return the gap that breaks a line: three times the median distance between readings. */
function usualGap(points) {
  const distances = points.slice(1).map(([ms], position) => ms - points[position][0]).sort((a, b) => a - b);
  return 3 * (distances[Math.floor(distances.length / 2)] ?? HOUR);
}

function redraw() {
  if (!data) return;
  const known = NAMES.filter((name) => data.series[name].length);
  drawLegend(known);
  const series = known
    .filter((name) => !hidden.has(name))
    .map((name) => ({ name, label: text.chart[name], points: data.series[name] }));
  if (!series.length) {
    note(text.noHistory);
    return;
  }
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  drawChart(container, {
    from: data.from,
    to: data.to,
    low: Math.floor(Math.min(...values, boot.limits.weak) - 1),
    high: Math.ceil(Math.max(...values) + 1),
    series,
    limits: [{ value: boot.limits.weak, label: `${boot.limits.weak} dBm`, name: "bad" }],
    bands: data.dark,
    gap: usualGap(series[0].points),
    unit: "dBm",
    xLabel: hours > 48 ? formats.day : formats.hour,
    tip: formats.full,
  });
}

function drawLegend(names) {
  const items = names.map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    button.append(mark(name), text.chart[name]);
    button.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      redraw();
    });
    return button;
  });
  if (data.dark.length) {
    const note = document.createElement("span");
    note.append(mark("dark"), text.chart.dark);
    items.push(note);
  }
  legend.replaceChildren(...items);
}

function mark(name) {
  const element = document.createElement("i");
  element.className = `dot series ${name}`;
  return element;
}

async function load() {
  loadedAt = performance.now();
  try {
    const answer = await fetch(`${container.dataset.url}?hours=${hours}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    data = await answer.json();
    redraw();
  } catch {
    if (!data) note(text.offline);
  }
}

export function start() {
  if (!container) return;
  const buttons = document.querySelectorAll("[data-hours]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      hours = Number(button.dataset.hours);
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
      load();
    });
  }
  new ResizeObserver(redraw).observe(container);
  // New readings are loaded when the page is refreshed.
  document.addEventListener("facho:refreshed", () => {
    if (performance.now() - loadedAt > RELOAD_AFTER) load();
  });
  load();
}
