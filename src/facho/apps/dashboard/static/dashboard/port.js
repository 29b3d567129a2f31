// Charts of one PON port: power of each day, and ONUs online.

import { drawChart } from "./chart.js";
import { formats, text } from "./time.js";

const section = document.getElementById("port-charts");
const DAY = 86400000;
// Minimum time between two loads.
const RELOAD_AFTER = 60000;

let data = null;
let loadedAt = 0;

const CHARTS = {
  power: ({ mean, worst }) => ({
    series: [
      { name: "series-1", label: mean, points: data.mean },
      { name: "series-4", label: worst, points: data.worst },
    ],
    range: (values) => [Math.floor(Math.min(...values) - 1), Math.ceil(Math.max(...values) + 1)],
    // A day without values breaks the line.
    gap: 1.5 * DAY,
    unit: "dBm",
    tip: formats.day,
  }),
  online: ({ online }) => ({
    series: [{ name: "series-1", label: online, points: data.online }],
    range: (values) => [0, Math.ceil(1.1 * Math.max(...values)) || 1],
    area: true,
    unit: "",
    tip: formats.full,
  }),
};

function note(container, sentence) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = sentence;
  container.replaceChildren(element);
}

function redraw() {
  if (!data) return;
  for (const figure of section.querySelectorAll("[data-figure]")) drawFigure(figure, CHARTS[figure.dataset.figure](figure.dataset));
}

function drawFigure(figure, { series, range, ...plot }) {
  const container = figure.querySelector(".chart");
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  if (!values.length) {
    note(container, figure.dataset.empty);
    return;
  }
  drawLegend(figure.querySelector(".legend"), series);
  const [low, high] = range(values);
  drawChart(container, { from: data.from, to: data.to, low, high, series, xLabel: formats.day, marks: data.marks, ...plot });
}

/** A chart with one line needs no legend, because its title names the line. */
function drawLegend(legend, series) {
  const items = series.map(({ name, label }) => {
    const item = document.createElement("span");
    const mark = document.createElement("i");
    mark.className = `dot series ${name}`;
    item.append(mark, label);
    return item;
  });
  legend.replaceChildren(...(items.length > 1 ? items : []));
}

async function load() {
  loadedAt = performance.now();
  try {
    const answer = await fetch(section.dataset.url, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    data = await answer.json();
    redraw();
  } catch {
    if (!data) for (const chart of section.querySelectorAll(".chart")) note(chart, text.offline);
  }
}

if (section) {
  new ResizeObserver(redraw).observe(section);
  document.addEventListener("facho:refreshed", () => {
    if (performance.now() - loadedAt > RELOAD_AFTER) load();
  });
  load();
}
