// A line chart in SVG: time on the x axis, values on the y axis, limits as lines, and a tooltip.

import { number } from "./time.js";

const PAD = { top: 10, right: 12, bottom: 22, left: 38 };
// Least room for a time on the x axis, in pixels.
const TICK_ROOM = 80;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TICK_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 60, 90].map((count) => count * DAY),
];

const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** Steps of 1, 2 or 5 times a power of ten that divide a range into about five. */
export function steps(low, high) {
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1000; value += step) found.push(value);
  return found;
}

/**
 * Draw into a container. `plot` has from, to, low, high, series [{name, label, points: [[ms, value]], breaks}]:
 * `breaks` is the set of the times of points after a gap. It may also have limits [{value, label, name, under}], bands [[from, to]], marks [{at, until, title}], gap (ms), area, unit,
 * xLabel(ms) and tip(ms).
 */
export function drawChart(container, plot) {
  const width = Math.max(240, container.clientWidth);
  const height = container.clientHeight || 180;
  const x = (ms) => PAD.left + ((ms - plot.from) / (plot.to - plot.from)) * (width - PAD.left - PAD.right);
  const y = (value) => PAD.top + ((plot.high - value) / (plot.high - plot.low)) * (height - PAD.top - PAD.bottom);
  const frame = { width, height, x, y };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  root.append(...bands(plot, frame), ...grid(plot, frame), ...limits(plot, frame), ...marks(plot, frame));
  for (const series of plot.series) root.append(...line(series, plot, frame));
  container.replaceChildren(root);
  watchPointer(container, root, plot, frame);
}

function bands({ bands: spans = [], from, to }, { x, height }) {
  return spans.map(([start, end]) => {
    const left = x(Math.max(start, from));
    const right = x(Math.min(end, to));
    return svg("rect", { class: "chart-band", x: left, y: PAD.top, width: Math.max(1, right - left), height: height - PAD.top - PAD.bottom });
  });
}

/** Vertical lines at which something happened, with a head at the top, and the time until it ended. */
function marks({ marks: found = [], from, to }, { x, height }) {
  return found
    .filter(({ at }) => at >= from && at <= to)
    .map(({ at, until, title }) => {
      const left = x(at);
      const span = until ? [svg("rect", { class: "chart-maintenance", x: left, y: PAD.top, width: Math.max(1, x(Math.min(until, to)) - left), height: height - PAD.top - PAD.bottom })] : [];
      return svg(
        "g",
        {},
        svg("title", {}, title),
        ...span,
        svg("line", { class: "chart-mark", x1: left, x2: left, y1: PAD.top, y2: height - PAD.bottom }),
        svg("path", { class: "chart-mark-head", d: `M${left - 4},${PAD.top - 6}h8l-4,6z` }),
      );
    });
}

/** Return round times of the user's zone, such as midnights, with room for a label each. */
export function roundTimes(from, to, most) {
  const least = (to - from) / Math.max(1, most);
  const step = TICK_STEPS.find((each) => each >= least) ?? Math.ceil(least / DAY) * DAY;
  // Local midnights are not those of UTC.
  const shift = (ms) => new Date(ms).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let local = Math.ceil((from - shift(from)) / step) * step; ; local += step) {
    const ms = local + shift(local + shift(from));
    if (ms > to) return found;
    if (ms >= from) found.push(ms);
  }
}

function timeAxis(plot, { x, width, height }) {
  const labels = new Map();
  for (const ms of roundTimes(plot.from, plot.to, Math.floor((width - PAD.left) / TICK_ROOM))) {
    // Of several times of a day, the first gets its name.
    if (!labels.has(plot.xLabel(ms))) labels.set(plot.xLabel(ms), ms);
  }
  return Array.from(labels, ([label, ms]) => {
    const anchor = x(ms) < PAD.left + TICK_ROOM / 3 ? "start" : x(ms) > width - PAD.right - TICK_ROOM / 3 ? "end" : "middle";
    return svg("text", { class: "chart-tick", x: x(ms), y: height - 6, "text-anchor": anchor }, label);
  });
}

// Part of the height of a bar, by the kind of its span.
const BARS = { online: 0.45, other: 0.7 };

/** Draw a bar of spans [{from, to, kind, label, cause}], with the time axis and the marks of a chart. */
export function drawTimeline(container, plot) {
  const width = Math.max(240, container.clientWidth);
  const height = container.clientHeight || 60;
  const x = (ms) => PAD.left + ((ms - plot.from) / (plot.to - plot.from)) * (width - PAD.left - PAD.right);
  const full = height - PAD.top - PAD.bottom;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  for (const { from, to, kind, label, cause } of plot.spans) {
    const part = full * (BARS[kind] ?? 1);
    const place = { x: x(from), y: PAD.top + full - part, width: Math.max(1, x(to) - x(from)), height: part };
    const title = [label, cause, `${plot.tip(from)} – ${plot.tip(to)}`].filter(Boolean).join(" · ");
    root.append(svg("rect", { class: `span-${kind}`, ...place }, svg("title", {}, title)));
  }
  root.append(...timeAxis(plot, { x, width, height }), ...marks(plot, { x, height }));
  container.replaceChildren(root);
}

function grid(plot, { x, y, width, height }) {
  const marks = steps(plot.low, plot.high);
  // Enough decimals to distinguish neighbouring marks.
  const decimals = marks.length > 1 ? Math.max(0, Math.ceil(-Math.log10(marks[1] - marks[0]))) : 1;
  const parts = marks.flatMap((value) => [
    svg("line", { class: "chart-grid", x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value) }),
    svg("text", { class: "chart-tick", x: PAD.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, number(value, decimals)),
  ]);
  return [...parts, ...timeAxis(plot, { x, width, height })];
}

function limits({ limits: lines = [], low, high }, { y, width }) {
  return lines
    .filter(({ value }) => value > low && value < high)
    .flatMap(({ value, label, name, under }) => [
      svg("line", { class: `chart-limit ${name}`, x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value) }),
      svg("text", { class: `chart-limit-label ${name}`, x: width - PAD.right - 2, y: y(value) + (under ? 12 : -4), "text-anchor": "end" }, label),
    ]);
}

/** One path per stretch without gaps; a stretch of a single reading is a dot. */
function line({ name, points, breaks }, { gap = Infinity, area, low }, { x, y }) {
  const stretches = [];
  for (const point of points) {
    const open = stretches.at(-1);
    if (open && !breaks?.has(point[0]) && point[0] - open.at(-1)[0] <= gap) open.push(point);
    else stretches.push([point]);
  }
  return stretches.flatMap((stretch) => {
    const path = stretch.map(([ms, value]) => `${x(ms).toFixed(1)},${y(value).toFixed(1)}`).join("L");
    if (stretch.length === 1) return [svg("circle", { class: `chart-dot ${name}`, cx: x(stretch[0][0]), cy: y(stretch[0][1]), r: 2.5 })];
    const drawn = [svg("path", { class: `chart-line ${name}`, d: `M${path}` })];
    if (area) {
      const end = `L${x(stretch.at(-1)[0])},${y(low)}L${x(stretch[0][0])},${y(low)}Z`;
      drawn.unshift(svg("path", { class: `chart-area ${name}`, d: `M${path}${end}` }));
    }
    return drawn;
  });
}

function nearest(points, ms) {
  let best = null;
  for (const point of points) if (!best || Math.abs(point[0] - ms) < Math.abs(best[0] - ms)) best = point;
  return best;
}

function watchPointer(container, root, plot, { x, width, height }) {
  const cursor = svg("line", { class: "chart-cursor", y1: PAD.top, y2: height - PAD.bottom, visibility: "hidden" });
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  root.append(cursor);
  container.append(tip);
  root.addEventListener("pointermove", (event) => {
    const left = event.clientX - root.getBoundingClientRect().left;
    const ms = plot.from + ((left - PAD.left) / (width - PAD.left - PAD.right)) * (plot.to - plot.from);
    const found = plot.series.map((series) => [series, nearest(series.points, ms)]).filter(([, point]) => point);
    if (!found.length) return;
    const at = found[0][1][0];
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(...tipLines(plot.tip(at), found, plot.unit));
    tip.hidden = false;
    tip.style.left = `${Math.min(Math.max(x(at), 80), width - 80)}px`;
  });
  root.addEventListener("pointerleave", () => {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  });
}

function tipLines(title, found, unit) {
  const row = (content, name) => {
    const element = document.createElement("span");
    element.className = name;
    element.textContent = content;
    return element;
  };
  return [
    row(title, "chart-tip-title"),
    ...found.map(([series, [, value]]) => row(`${series.label} ${number(value, 2)} ${unit}`, `chart-tip-row ${series.name}`)),
  ];
}
