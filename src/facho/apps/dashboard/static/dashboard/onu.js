// The page of one ONU: its timeline, its charts over the same time, Read now, and notes.

import { drawChart, drawTimeline } from "./chart.js";
import { start as startNotes } from "./notes.js";
import { start as startReading } from "./reading.js";
import { boot, fill, formats, number, span, text, write, zone } from "./time.js";

const $ = (id) => document.getElementById(id);
const HOUR = 3600000;
// Minimum time between two loads of the same period, because a month has many points.
const RELOAD_AFTER = 20000;

const POWERS = ["rx_dbm", "port_rx_dbm", "olt_rx_dbm", "tx_dbm"];
const RATES = ["in_octets", "out_octets"];
const UNITS = [
  [1e9, "Gbit/s"],
  [1e6, "Mbit/s"],
  [1e3, "kbit/s"],
  [1, "bit/s"],
];
// The sent power is 25 dB above the received ones. Shown together, their lines would be flat.
const hidden = new Set(["tx_dbm"]);

let data = null;
let shownUrl = "";
let loadedAt = 0;

function note(container, sentence) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = sentence;
  container.replaceChildren(element);
}

const isLong = () => data.to - data.from > 48 * HOUR;

/** What all charts have in common: the time axis, the marks, and the dark times. */
function frame() {
  return {
    from: data.from,
    to: data.to,
    marks: data.marks.map(({ at, until, text: title }) => ({ at, until, title })),
    bands: data.timeline.filter(({ kind }) => kind === "dark").map(({ from, to }) => [from, to]),
    xLabel: isLong() ? formats.day : formats.hour,
    tip: formats.full,
  };
}

function linesOf(names, factor = 1) {
  return names
    .filter((name) => data.series[name].length)
    .map((name) => ({
      name,
      label: text.chart[name],
      points: data.series[name].map(([ms, value]) => [ms, value / factor]),
      breaks: new Set(data.breaks[name]),
    }));
}

const valuesOf = (series) => series.flatMap(({ points }) => points.map(([, value]) => value));

function drawPower() {
  const known = linesOf(POWERS);
  drawLegend(
    $("power-legend"),
    known.map(({ name }) => name),
  );
  const series = known.filter(({ name }) => !hidden.has(name));
  if (!series.length) return note($("power-chart"), text.noHistory);
  const values = valuesOf(series);
  drawChart($("power-chart"), {
    ...frame(),
    low: Math.floor(Math.min(...values, boot.limits.weak) - 1),
    high: Math.ceil(Math.max(...values) + 1),
    series,
    limits: [{ value: boot.limits.weak, label: `${number(boot.limits.weak)} dBm`, name: "bad" }],
    unit: "dBm",
  });
}

function drawTraffic() {
  const most = Math.max(0, ...RATES.flatMap((name) => data.series[name].map(([, value]) => value)));
  const [factor, unit] = UNITS.find(([size]) => most >= size) ?? UNITS.at(-1);
  const series = linesOf(RATES, factor);
  if (!series.length) {
    $("traffic-legend").replaceChildren();
    return note($("traffic-chart"), text.noTraffic);
  }
  const items = series.map(({ name, label }) => legendItem(name, `${label} (${unit})`));
  $("traffic-legend").replaceChildren(...items);
  drawChart($("traffic-chart"), { ...frame(), low: 0, high: (1.1 * most) / factor || 1, series, unit });
}

function drawTemperature() {
  const series = linesOf(["temperature_c"]);
  if (!series.length) return note($("temperature-chart"), text.noTemperature);
  const values = valuesOf(series);
  const [low, high] = [Math.floor(Math.min(...values) - 2), Math.ceil(Math.max(...values) + 2)];
  drawChart($("temperature-chart"), { ...frame(), low, high, series, unit: "°C" });
}

function mark(name) {
  const element = document.createElement("i");
  element.className = `dot series ${name}`;
  return element;
}

function legendItem(name, label) {
  const item = document.createElement("span");
  item.append(mark(name), label);
  return item;
}

function drawLegend(legend, names) {
  const items = names.map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    button.append(mark(name), text.chart[name]);
    button.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      drawPower();
    });
    return button;
  });
  if (frame().bands.length) items.push(legendItem("dark", text.chart.dark));
  legend.replaceChildren(...items);
}

function drawStates() {
  drawTimeline($("timeline-chart"), { ...frame(), spans: data.timeline });
  const isMaintained = data.marks.some(({ kind }) => kind === "maintenance");
  const kinds = [...new Set(data.timeline.map(({ kind }) => kind)), ...(isMaintained ? ["maintenance"] : [])];
  const items = kinds.map((kind) => {
    const item = document.createElement("span");
    const swatch = document.createElement("i");
    swatch.className = `swatch span-${kind}`;
    item.append(swatch, text.timeline[kind]);
    return item;
  });
  if (data.marks.some(({ kind }) => kind === "change")) items.push(legendItem("mark", text.timeline.marks));
  $("timeline-legend").replaceChildren(...items);
  $("timeline-table").replaceChildren(stateTable(), ...(data.marks.length ? [markTable()] : []));
}

function table(titles, rows) {
  const made = document.createElement("table");
  made.className = "table keep";
  const head = made.createTHead().insertRow();
  for (const title of titles) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const content of row) line.insertCell().append(content);
  }
  return made;
}

function stateTable() {
  const rows = data.timeline
    .map(({ from, to, label, cause }) => [formats.full(from), span((to - from) / 1000), label, cause || "–"])
    .reverse();
  return table(text.timeline.titles, rows);
}

function markTable() {
  const rows = data.marks.map((each) => {
    const link = document.createElement("a");
    link.href = each.url;
    link.textContent = each.text;
    const at = each.until ? `${formats.full(each.at)} – ${formats.full(each.until)}` : formats.full(each.at);
    return [at, each.url ? link : each.text];
  });
  return table(text.timeline.markTitles, rows.reverse());
}

function redraw() {
  if (!data) return;
  const period = { from: formats.full(data.from), to: formats.full(data.to), zone };
  write($("chart-span"), fill(text.timeline.period, period));
  drawStates();
  drawPower();
  drawTraffic();
  drawTemperature();
}

async function load() {
  const url = (shownUrl = $("onu-period").dataset.url);
  loadedAt = performance.now();
  try {
    const answer = await fetch(url, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const loaded = await answer.json();
    // Another period may have been chosen meanwhile.
    if (url !== shownUrl) return;
    data = loaded;
    redraw();
  } catch {
    if (!data) note($("timeline-chart"), text.offline);
  }
}

new ResizeObserver(redraw).observe($("power-chart"));
// The page is refreshed after new readings, and when another period is chosen.
document.addEventListener("facho:refreshed", () => {
  if ($("onu-period").dataset.url !== shownUrl || performance.now() - loadedAt > RELOAD_AFTER) load();
});
load();
startReading();
startNotes();
