// Charts of one OLT over time: success, durations, round trips, retries and lost slots.

import { drawChart } from "./chart.js";
import { formats, now, text } from "./time.js";

const section = document.getElementById("figures");
const HOUR = 3600000;
// Minimum time between two loads.
const RELOAD_AFTER = 60000;
const COLOURS = 5;

let hours = 24;
let step = "";
let data = null;
let loadedAt = 0;

const line = (name, factor = 1) => ({ label: text.figures[name], value: (point) => (point[name] === null ? null : point[name] * factor) });

/** Lines of each chart, by its `data-figure`. */
const CHARTS = {
  success: () => ({ unit: "%", high: 100, lines: [line("success_rate")] }),
  duration: () => ({ unit: "s", lines: [line("duration_mean"), line("duration_p95")] }),
  round_trip: () => ({ unit: "ms", lines: [line("round_trip_p50", 1000), line("round_trip_p95", 1000)] }),
  retransmissions: () => ({ unit: "", lines: [line("retransmissions")] }),
  retry_gap: () => ({ unit: "s", lines: [line("retry_gap_mean")] }),
  lost: () => ({ unit: "", lines: causes().map((cause) => ({ label: text.causes[cause] ?? cause, value: (point) => point.lost_slots && (point.lost_slots[cause] ?? 0) })) }),
};

function causes() {
  return [...new Set(data.points.flatMap((point) => Object.keys(point.lost_slots ?? {})))].sort();
}

function redraw() {
  if (!data) return;
  for (const figure of section.querySelectorAll("[data-figure]")) drawFigure(figure, CHARTS[figure.dataset.figure]());
}

function drawFigure(figure, { unit, high, lines }) {
  const series = lines
    .map(({ label, value }, position) => ({
      name: `series-${(position % COLOURS) + 1}`,
      label,
      points: data.points.map((point) => [Date.parse(point.at), value(point)]).filter(([, each]) => each !== null),
    }))
    .filter(({ points }) => points.length);
  const container = figure.querySelector(".chart");
  drawLegend(figure.querySelector(".legend"), series);
  if (!series.length) {
    note(container, figure.dataset.empty);
    return;
  }
  const from = Date.parse(data.from);
  const marks = JSON.parse(document.getElementById("figure-marks").textContent).filter(({ until }) => until > from);
  const width = Date.parse(data.points[1]?.at ?? data.to) - Date.parse(data.points[0].at);
  drawChart(container, {
    from,
    to: Date.parse(data.to),
    low: 0,
    high: high ?? (1.1 * Math.max(...series.flatMap(({ points }) => points.map(([, each]) => each))) || 1),
    gap: 1.5 * width,
    series,
    marks: marks.map((mark) => ({ ...mark, at: Math.max(mark.at, from) })),
    unit,
    xLabel: hours > 48 ? formats.day : formats.hour,
    tip: formats.full,
  });
}

/** A chart with one line needs no legend, because its title names the line. */
function drawLegend(legend, series) {
  legend.replaceChildren(
    ...(series.length > 1 || legend.dataset.always !== undefined ? series : []).map(({ name, label }) => {
      const item = document.createElement("span");
      const mark = document.createElement("i");
      mark.className = `dot series ${name}`;
      item.append(mark, label);
      return item;
    }),
  );
}

function note(container, sentence) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = sentence;
  container.replaceChildren(element);
}

async function load() {
  const wanted = hours;
  loadedAt = performance.now();
  const from = new Date(now() - wanted * HOUR).toISOString();
  try {
    const answer = await fetch(`${section.dataset.url}?from=${encodeURIComponent(from)}&step=${step}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const loaded = await answer.json();
    // Another range may have been chosen meanwhile.
    if (wanted !== hours) return;
    data = loaded;
    redraw();
  } catch {
    if (wanted === hours && !data) for (const chart of section.querySelectorAll(".chart")) note(chart, text.offline);
  }
}

export function start() {
  if (!section) return;
  const buttons = section.querySelectorAll("[data-figure-hours]");
  const choose = (button) => {
    hours = Number(button.dataset.figureHours);
    step = button.dataset.step;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    load();
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button));
  new ResizeObserver(redraw).observe(section);
  document.addEventListener("facho:refreshed", () => {
    if (performance.now() - loadedAt > RELOAD_AFTER) load();
  });
  choose(buttons[0]);
}
