// Charts of raw OIDs, of an ONU or of an OLT itself.

import { drawChart } from "./chart.js";
import { formats, text } from "./time.js";

const HOUR = 3600000;
const RELOAD_AFTER = 60000;

const section = document.getElementById("raw-values");
let range = "";
let data = null;
let loadedAt = 0;

function note(container, sentence) {
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

function draw(figure) {
  const container = figure.querySelector(".chart");
  const points = data.series[figure.dataset.value] ?? [];
  if (!points.length) return note(container, figure.dataset.empty);
  const values = points.map(([, value]) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const margin = 0.1 * (most - least) || 0.1 * Math.abs(most) || 1;
  drawChart(container, {
    from: data.from,
    to: data.to,
    low: least >= 0 ? Math.max(0, least - margin) : least - margin,
    high: most + margin,
    series: [{ name: "series-1", label: figure.dataset.value, points, gap: usualGap(points) }],
    marks: data.marks.map(({ at, until, text: title }) => ({ at, until, title })),
    unit: figure.dataset.unit,
    xLabel: data.to - data.from > 48 * HOUR ? formats.day : formats.hour,
    tip: formats.full,
  });
}

function redraw() {
  if (data) section.querySelectorAll("[data-value]").forEach(draw);
}

async function load() {
  const wanted = range;
  loadedAt = performance.now();
  try {
    const answer = await fetch(`${section.dataset.url}?range=${wanted}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const loaded = await answer.json();
    // Another range may have been chosen meanwhile.
    if (wanted !== range) return;
    data = loaded;
    redraw();
  } catch {
    if (wanted === range && !data) for (const chart of section.querySelectorAll(".chart")) note(chart, text.offline);
  }
}

const buttons = section.querySelectorAll("[data-range]");
function choose(button) {
  range = button.dataset.range;
  for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
  load();
}
for (const button of buttons) button.addEventListener("click", () => choose(button));
new ResizeObserver(redraw).observe(section);
document.addEventListener("facho:refreshed", () => {
  if (performance.now() - loadedAt > RELOAD_AFTER) load();
});
choose(buttons[0]);
