// The map: ONUs and sites in SVG, on a plain grid or on tiles. The server groups ONUs into cells.
// Moved by dragging or with the arrow keys; zoomed with the wheel, two fingers, + and −.

import { on } from "./feed.js";
import { boot, fill, number } from "./time.js";

const { urls, bounds, tiles, words } = boot.map;
const TILE = 256;
const LEAST_ZOOM = 2;
const MOST_ZOOM = 19;
// Of a single place, when the map goes to it.
const CLOSE_ZOOM = 17;
// Of the surroundings of a site.
const SITE_ZOOM = 13;
// The server is asked for more than is shown, so that small moves need no answer.
const MARGIN = 0.4;
const PAUSE = 150;
// Between two answers to news of the engine.
const NEWS_PAUSE = 10000;
// Of the list beside the map.
const MOST_LISTED = 20;
const EARTH = 40075016.686;
const EDGE = 85.05112877980659;

const box = document.getElementById("map");
const svgRoot = box.querySelector("svg");
const world = svgRoot.querySelector("[data-world]");
const layers = Object.fromEntries([...world.children].map((each) => [each.dataset.layer, each]));
const popup = document.getElementById("map-popup");
const form = document.getElementById("map-filters");
const status = document.getElementById("map-status");

let view = { x: 0.5, y: 0.5, zoom: LEAST_ZOOM };
let cells = [];
let sites = [];
let problems = [];
let chosen = new URLSearchParams(location.search).get("problem") ?? "";
let loaded = null;
let underway = null;
let timer = null;
let lastNews = 0;
let drawnGround = "";

// Geometry. x and y are shares of the world, from the north-west.

const xOf = (longitude) => (longitude + 180) / 360;
const longitudeOf = (x) => x * 360 - 180;

function yOf(latitude) {
  const sine = Math.sin((Math.max(-EDGE, Math.min(latitude, EDGE)) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

const latitudeOf = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;
const pixels = (zoom = view.zoom) => TILE * 2 ** zoom;
const size = () => ({ width: box.clientWidth, height: box.clientHeight });
const between = (low, value, high) => Math.max(low, Math.min(value, high));

/** Return the point of a position on the screen. */
function screen(latitude, longitude) {
  const { width, height } = size();
  return [(xOf(longitude) - view.x) * pixels() + width / 2, (yOf(latitude) - view.y) * pixels() + height / 2];
}

/** Return the shown area in degrees, with a margin as a share of its size. */
function area(margin = 0) {
  const { width, height } = size();
  const dx = (width / 2 / pixels()) * (1 + margin);
  const dy = (height / 2 / pixels()) * (1 + margin);
  return {
    west: longitudeOf(Math.max(0, view.x - dx)),
    east: longitudeOf(Math.min(1, view.x + dx)),
    north: view.y - dy < 0 ? 90 : latitudeOf(view.y - dy),
    south: view.y + dy > 1 ? -90 : latitudeOf(view.y + dy),
  };
}

const asText = ({ west, south, east, north }) => [west, south, east, north].map((each) => each.toFixed(6)).join(",");
const contains = (outer, inner) =>
  outer.west <= inner.west && outer.east >= inner.east && outer.south <= inner.south && outer.north >= inner.north;

function move(dx, dy) {
  go(view.x + dx / pixels(), view.y + dy / pixels(), view.zoom);
}

/** Zoom, and keep a point of the screen where it is. */
function zoomBy(steps, [px, py] = [size().width / 2, size().height / 2]) {
  const zoom = between(LEAST_ZOOM, view.zoom + steps, MOST_ZOOM);
  const { width, height } = size();
  const x = view.x + (px - width / 2) / pixels();
  const y = view.y + (py - height / 2) / pixels();
  go(x - (px - width / 2) / pixels(zoom), y - (py - height / 2) / pixels(zoom), zoom);
}

/** Show all of an area, as large as possible. */
function fit({ west, south, east, north }) {
  const { width, height } = size();
  const wide = Math.max(xOf(east) - xOf(west), 1e-9);
  const high = Math.max(yOf(south) - yOf(north), 1e-9);
  const zoom = Math.floor(Math.log2(Math.min((width - 90) / wide, (height - 90) / high) / TILE));
  const most = wide + high < 1e-8 ? CLOSE_ZOOM : MOST_ZOOM;
  go(xOf((west + east) / 2), (yOf(north) + yOf(south)) / 2, between(LEAST_ZOOM, zoom, most));
}

function go(x, y, zoom) {
  view = { x: between(0, x, 1), y: between(0, y, 1), zoom };
  closePopup();
  draw();
  const hash = `#${zoom}/${latitudeOf(view.y).toFixed(5)}/${longitudeOf(view.x).toFixed(5)}`;
  history.replaceState(null, "", location.pathname + location.search + hash);
  loadSoon();
}

// Data

const query = () => {
  const fields = [...new FormData(form)].filter(([, value]) => value);
  return new URLSearchParams(fields);
};

function loadSoon(isForced = false) {
  if (isForced) loaded = null;
  clearTimeout(timer);
  timer = setTimeout(load, PAUSE);
}

async function load() {
  const shown = area();
  if (loaded && loaded.zoom === view.zoom && contains(loaded.area, shown)) {
    list();
    return;
  }
  const wanted = { area: area(MARGIN), zoom: view.zoom };
  const parameters = query();
  if (parameters.has("q")) parameters.set("search", parameters.get("q"));
  parameters.delete("q");
  if (chosen) parameters.set("problem", chosen);
  parameters.set("bbox", asText(wanted.area));
  parameters.set("zoom", wanted.zoom);
  underway?.abort();
  const mine = (underway = new AbortController());
  try {
    const answer = await fetch(`${urls.onus}?${parameters}`, { signal: mine.signal, cache: "no-store" });
    const data = await answer.json();
    if (!answer.ok) throw new Error(Object.values(data).flat().join(" "));
    cells = data.cells;
    loaded = wanted;
    tell("");
    draw();
    list();
  } catch (error) {
    if (!mine.signal.aborted) tell(error instanceof TypeError ? boot.text.offline : error.message);
  } finally {
    if (underway === mine) underway = null;
  }
}

async function loadRows(url) {
  if (!url) return [];
  const answer = await fetch(url, { cache: "no-store" });
  return answer.ok ? (await answer.json()).results : [];
}

async function loadOthers() {
  try {
    [sites, problems] = await Promise.all([loadRows(urls.sites), loadRows(urls.problems)]);
  } catch {
    // The banner already shows that Facho cannot be reached.
    return;
  }
  draw();
  listProblems();
  listSites();
}

function tell(sentence) {
  status.textContent = sentence;
  status.hidden = !sentence;
}

// Drawing

const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

function draw() {
  const { width, height } = size();
  svgRoot.setAttribute("viewBox", `0 0 ${width} ${height}`);
  world.removeAttribute("transform");
  const ground = [view.x, view.y, view.zoom, width, height].join();
  // News of ONUs leave it: images that are made again would flicker.
  if (ground !== drawnGround) layers.ground.replaceChildren(...(tiles ? drawTiles() : drawGrid()));
  drawnGround = ground;
  layers.sites.replaceChildren(...drawSites());
  layers.cells.replaceChildren(...cells.map(drawCell).reverse());
  layers.badges.replaceChildren(...cells.filter((cell) => cell.affected && !cell.onu).map(drawBadge).reverse());
  drawScale();
}

function drawTiles() {
  const { width, height } = size();
  const count = 2 ** view.zoom;
  const left = view.x * pixels() - width / 2;
  const top = view.y * pixels() - height / 2;
  const found = [];
  // One more on each side, for a map that is dragged.
  for (let x = Math.floor(left / TILE) - 1; x * TILE < left + width + TILE; x += 1) {
    for (let y = Math.floor(top / TILE) - 1; y * TILE < top + height + TILE; y += 1) {
      if (x < 0 || y < 0 || x >= count || y >= count) continue;
      const href = fill(tiles.url, { z: view.zoom, x, y });
      found.push(svg("image", { href, x: Math.round(x * TILE - left), y: Math.round(y * TILE - top), width: TILE, height: TILE }));
    }
  }
  return found;
}

/** Return the smallest 1, 2 or 5 times a power of ten that is not below a value. */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((each) => each * power >= least * 0.999) * power;
}

/** Lines of latitude and longitude, at least 110 pixels apart. */
function drawGrid() {
  const { width, height } = size();
  const step = nice((110 / pixels()) * 360);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const shown = area(1);
  const lines = [];
  for (let at = Math.ceil(shown.west / step) * step; at <= shown.east; at += step) {
    const [x] = screen(0, at);
    lines.push(svg("line", { x1: x, x2: x, y1: -height, y2: 2 * height }));
    // The corner would have two labels.
    if (x > 50) lines.push(svg("text", { x: x + 4, y: height - 8 }, degrees(at, decimals, words.east, words.west)));
  }
  for (let at = Math.ceil(shown.south / step) * step; at <= shown.north; at += step) {
    const [, y] = screen(at, 0);
    lines.push(svg("line", { x1: -width, x2: 2 * width, y1: y, y2: y }));
    if (y < height - 30) lines.push(svg("text", { x: 6, y: y - 5 }, degrees(at, decimals, words.north, words.south)));
  }
  return lines;
}

const degrees = (value, decimals, above, below) =>
  `${number(Math.abs(value), decimals)}°${Math.abs(value) < 1e-9 ? "" : ` ${value > 0 ? above : below}`}`;

function drawScale() {
  const metres = (EARTH * Math.cos((latitudeOf(view.y) * Math.PI) / 180)) / pixels();
  const length = nice((metres * 120) / 2.5);
  const scale = document.getElementById("map-scale");
  scale.style.width = `${length / metres}px`;
  scale.textContent = length < 1000 ? `${number(length)} m` : `${number(length / 1000)} km`;
}

const TONES = { good: "ok", weak: "warn", down: "bad", other: "quiet" };

/** Return the ONUs of a cell by what they are, each once. */
const partsOf = (cell) => ({
  down: cell.down,
  weak: cell.weak,
  other: cell.count - cell.down - cell.weak - cell.good,
  good: cell.good,
});

function drawCell(cell, index) {
  const [x, y] = screen(cell.latitude, cell.longitude);
  const isDim = chosen && !cell.affected;
  const group = svg("g", {
    class: `map-cell${isDim ? " is-dim" : ""}`,
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
    "data-cell": index,
  });
  group.append(...(cell.onu ? oneOnu(cell) : manyOnus(cell)));
  group.append(svg("title", {}, describe(cell)));
  return group;
}

function oneOnu(cell) {
  const kind = Object.entries(partsOf(cell)).find(([, count]) => count)[0];
  const parts = [svg("circle", { class: `map-onu ${TONES[kind]}`, r: 7 })];
  // Not by colour alone.
  if (kind === "down") parts.push(svg("path", { class: "map-sign", d: "M-3,-3 3,3M3,-3 -3,3" }));
  if (kind === "weak") parts.push(svg("path", { class: "map-sign", d: "M-3.5,0H3.5" }));
  if (cell.affected) parts.unshift(svg("circle", { class: "map-hit", r: 12 }));
  return parts;
}

const radiusOf = (cell) => 13 + 3.5 * Math.log10(cell.count);

function manyOnus(cell) {
  const radius = radiusOf(cell);
  const parts = [svg("circle", { class: "map-many", r: radius })];
  let start = 0;
  for (const [kind, count] of Object.entries(partsOf(cell))) {
    const share = (count / cell.count) * 100;
    if (count) {
      const dashes = { pathLength: 100, "stroke-dasharray": `${share} 100`, "stroke-dashoffset": -start };
      parts.push(svg("circle", { class: `map-part ${TONES[kind]}`, r: radius, transform: "rotate(-90)", ...dashes }));
    }
    start += share;
  }
  parts.push(svg("text", { class: "map-count", y: 4 }, short(cell.count)));
  if (cell.affected) parts.unshift(svg("circle", { class: "map-hit", r: radius + 6 }));
  return parts;
}

/** The number of ONUs in a problem, above the sites: it is what one looks for. */
function drawBadge(cell) {
  const [x, y] = screen(cell.latitude, cell.longitude);
  const radius = radiusOf(cell);
  const label = short(cell.affected);
  const width = 10 + 6.5 * label.length;
  return svg(
    "g",
    { transform: `translate(${(x + radius * 0.6).toFixed(1)},${(y - radius).toFixed(1)})` },
    svg("rect", { class: "map-badge", x: 0, y: -9, width, height: 16, rx: 8 }),
    svg("text", { class: "map-badge-text", x: width / 2, y: 3 }, label),
  );
}

const short = (count) => (count < 10000 ? number(count) : `${number(count / 1000)}k`);

// Size of the icon of a site above its point, and of a letter of its name.
const ICON = { left: -10, top: -46, right: 10, bottom: -26 };
const LETTER = 7;

const meet = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

const boxAt = ([x, y], { left, top, right, bottom }) => ({ left: x + left, top: y + top, right: x + right, bottom: y + bottom });

/** Names that would cover an icon or another name are left out. Sites in trouble keep theirs first. */
function drawSites() {
  const places = sites.map((site) => screen(site.latitude, site.longitude));
  const taken = places.map((place) => boxAt(place, ICON));
  const trouble = (index) => 1000 * sites[index].unreachable + sites[index].problems;
  const named = new Set();
  for (const index of [...sites.keys()].sort((one, other) => trouble(other) - trouble(one))) {
    const box = boxAt(places[index], { left: 11, top: -44, right: 14 + LETTER * sites[index].name.length, bottom: -28 });
    if (taken.some((other) => meet(box, other))) continue;
    taken.push(box);
    named.add(index);
  }
  return sites.map((site, index) => drawSite(site, index, places[index], named.has(index)));
}

function drawSite(site, index, [x, y], hasName) {
  return svg(
    "g",
    { class: "map-site", transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, "data-site": index },
    // Above its point, so that the ONUs there can be seen.
    svg("path", { class: "map-pole", d: "M0,0V-28" }),
    svg("rect", { class: site.unreachable ? "bad" : "ok", x: -8, y: -44, width: 16, height: 16, rx: 3 }),
    svg("path", { class: "map-sign", d: site.unreachable ? "M-3,-39 3,-33M3,-39 -3,-33" : "M-4,-38H4M-4,-33.5H4" }),
    ...(hasName ? [svg("text", { x: 12, y: -32 }, site.name)] : []),
    svg("title", {}, site.name),
  );
}

const onusText = (count) => (count === 1 ? words.onu : fill(words.onus, { n: number(count) }));

/** A cell in words: 34 ONUs, 5 down, 5 in a problem. */
function describe(cell) {
  if (cell.onu) return `${cell.onu.name} · ${cell.onu.state}`;
  const { down, weak } = partsOf(cell);
  const parts = [onusText(cell.count)];
  if (down) parts.push(fill(words.down, { n: number(down) }));
  if (weak) parts.push(fill(words.weak, { n: number(weak) }));
  if (cell.affected) parts.push(fill(words.affected, { n: number(cell.affected) }));
  return parts.join(", ");
}

// Details of a marker

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

const link = (href, label) => element("a", { href, textContent: label });

function listUrl(of) {
  const parameters = query();
  parameters.set("area", [of.west, of.south, of.east, of.north].join(","));
  return `${urls.list}?${parameters}`;
}

function openPopup(latitude, longitude, title, lines) {
  const [x, y] = screen(latitude, longitude);
  const close = element("button", { type: "button", className: "icon-button", textContent: "×" });
  close.setAttribute("aria-label", words.close);
  close.addEventListener("click", () => {
    closePopup();
    box.focus();
  });
  popup.replaceChildren(element("strong", {}, title), close, ...lines.map((each) => element("p", {}, ...[each].flat())));
  popup.hidden = false;
  const { width } = size();
  popup.style.left = `${between(8, x - popup.offsetWidth / 2, width - popup.offsetWidth - 8)}px`;
  const isAbove = y - popup.offsetHeight - 16 > 0;
  popup.style.top = `${isAbove ? y - popup.offsetHeight - 14 : y + 14}px`;
  popup.querySelector("a")?.focus({ preventScroll: true });
}

function closePopup() {
  popup.hidden = true;
}

function openCell(cell) {
  const isPoint = cell.west === cell.east && cell.south === cell.north;
  if (cell.onu) {
    const { onu } = cell;
    const of = problems.filter((each) => onu.problems.includes(each.id));
    openPopup(cell.latitude, cell.longitude, link(onu.url, onu.name), [
      onu.state,
      onu.port_url ? [link(onu.port_url, onu.place)] : onu.place,
      ...of.map((each) => [link(each.url, each.title)]),
    ]);
  } else if (isPoint || view.zoom === MOST_ZOOM) {
    openPopup(cell.latitude, cell.longitude, link(listUrl(cell), onusText(cell.count)), [describe(cell)]);
  } else {
    fit(cell);
  }
}

const siteText = ({ olts, unreachable }) => {
  const parts = [fill(words.olts, { n: number(olts) })];
  if (unreachable) parts.push(fill(words.unreachable, { n: number(unreachable) }));
  return parts.join(", ");
};

function openSite(site) {
  const lines = [siteText(site)];
  if (site.problems) lines.push([link(site.problems_url, fill(words.problems, { n: number(site.problems) }))]);
  openPopup(site.latitude, site.longitude, link(site.url, site.name), lines);
}

// The lists beside the map: the same for the keyboard and for screen readers.

const button = (label, note, act) => {
  const made = element("button", { type: "button", className: "map-row" }, element("span", {}, label), element("small", {}, note));
  made.addEventListener("click", () => {
    act();
    // On a phone the map is above the lists.
    box.scrollIntoView({ block: "nearest" });
  });
  return element("li", {}, made);
};

function list() {
  const shown = area();
  const inside = cells.filter(
    ({ latitude, longitude }) =>
      latitude >= shown.south && latitude <= shown.north && longitude >= shown.west && longitude <= shown.east,
  );
  const worst = inside.sort((a, b) => b.affected - a.affected || b.down - a.down || b.weak - a.weak || b.count - a.count);
  const total = inside.reduce((sum, each) => sum + each.count, 0);
  const summary = { count: total, down: 0, weak: 0, good: total, affected: 0 };
  for (const each of inside) for (const name of ["down", "weak", "affected"]) summary[name] += each[name];
  document.getElementById("map-summary").textContent = total ? describe(summary) : words.nothing;
  const all = document.getElementById("map-all");
  all.hidden = !total;
  all.href = listUrl(shown);
  const rows = worst.slice(0, MOST_LISTED).map((cell) =>
    button(cell.onu ? cell.onu.name : describe(cell), cell.onu ? `${cell.onu.state} · ${cell.onu.place}` : place(cell), () => openCell(cell)),
  );
  const rowsOf = document.getElementById("map-list");
  const hasFocus = rowsOf.contains(document.activeElement);
  rowsOf.replaceChildren(...rows);
  if (hasFocus) rowsOf.querySelector("button")?.focus({ preventScroll: true });
}

const place = ({ latitude, longitude }) =>
  `${degrees(latitude, 4, words.north, words.south)}, ${degrees(longitude, 4, words.east, words.west)}`;

function listProblems() {
  const rows = problems.map((each) => {
    const row = button(each.title, onusText(each.onus), () => choose(each));
    row.firstChild.classList.add("map-problem", each.severity);
    row.firstChild.setAttribute("aria-pressed", String(each.id) === chosen);
    row.append(link(each.url, words.details));
    return row;
  });
  document.getElementById("map-problems").replaceChildren(...rows);
  document.getElementById("map-no-problems").hidden = rows.length > 0;
}

function listSites() {
  const rows = sites.map((site) =>
    button(site.name, siteText(site), () => {
      go(xOf(site.longitude), yOf(site.latitude), Math.max(view.zoom, SITE_ZOOM));
      openSite(site);
    }),
  );
  document.getElementById("map-sites").replaceChildren(...rows);
  document.getElementById("map-sites-card").hidden = !rows.length;
}

/** Show one problem alone, or all again. */
function choose(problem) {
  chosen = chosen === String(problem.id) ? "" : String(problem.id);
  setAddress();
  listProblems();
  if (chosen) fit(problem);
  loadSoon(true);
}

function setAddress() {
  const parameters = query();
  if (chosen) parameters.set("problem", chosen);
  const text = parameters.size ? `?${parameters}` : "";
  history.replaceState(null, "", location.pathname + text + location.hash);
}

// Input

const fingers = new Map();
let start = null;
let spread = 0;

const at = (event) => {
  const frame = box.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
};

svgRoot.addEventListener("pointerdown", (event) => {
  svgRoot.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, at(event));
  start = { at: at(event), target: event.target };
  spread = distance();
});

svgRoot.addEventListener("pointermove", (event) => {
  if (!fingers.has(event.pointerId)) return;
  fingers.set(event.pointerId, at(event));
  if (fingers.size === 2) pinch();
  else if (start) world.setAttribute("transform", `translate(${shift(event).join(",")})`);
});

const shift = (event) => at(event).map((each, index) => each - start.at[index]);

svgRoot.addEventListener("pointerup", (event) => {
  fingers.delete(event.pointerId);
  if (!start) return;
  const [dx, dy] = shift(event);
  const { target } = start;
  start = null;
  if (Math.hypot(dx, dy) > 4) move(-dx, -dy);
  else {
    world.removeAttribute("transform");
    open(target);
  }
});

svgRoot.addEventListener("pointercancel", (event) => {
  fingers.delete(event.pointerId);
  start = null;
  draw();
});

function distance() {
  const [one, two] = [...fingers.values()];
  return two ? Math.hypot(one[0] - two[0], one[1] - two[1]) : 0;
}

function pinch() {
  start = null;
  const [one, two] = [...fingers.values()];
  const middle = [(one[0] + two[0]) / 2, (one[1] + two[1]) / 2];
  const ratio = spread ? distance() / spread : 1;
  if (ratio < 1.5 && ratio > 0.67) return;
  zoomBy(ratio > 1 ? 1 : -1, middle);
  spread = distance();
}

function open(target) {
  const marker = target.closest("[data-cell], [data-site]");
  if (!marker) closePopup();
  else if (marker.dataset.cell) openCell(cells[marker.dataset.cell]);
  else openSite(sites[marker.dataset.site]);
}

let wheel = 0;
svgRoot.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    wheel += event.deltaMode ? event.deltaY * 40 : event.deltaY;
    if (Math.abs(wheel) < 60) return;
    zoomBy(wheel < 0 ? 1 : -1, at(event));
    wheel = 0;
  },
  { passive: false },
);

const KEYS = {
  ArrowLeft: () => move(-100, 0),
  ArrowRight: () => move(100, 0),
  ArrowUp: () => move(0, -100),
  ArrowDown: () => move(0, 100),
  "+": () => zoomBy(1),
  "=": () => zoomBy(1),
  "-": () => zoomBy(-1),
  Home: () => fit(bounds),
  0: () => fit(bounds),
};

box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    closePopup();
    box.focus();
  }
  if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

for (const each of box.querySelectorAll("[data-map-key]")) {
  each.addEventListener("click", () => KEYS[each.dataset.mapKey]());
}

let typing = null;
form.addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    setAddress();
    loadSoon(true);
  }, event.target.type === "search" ? 300 : 0);
});
form.addEventListener("submit", (event) => event.preventDefault());

function news() {
  if (document.hidden || performance.now() - lastNews < NEWS_PAUSE) return;
  lastNews = performance.now();
  loadSoon(true);
  loadOthers();
}

on("readings", news);
on("problems", news);
new ResizeObserver(() => {
  draw();
  loadSoon();
}).observe(box);

async function begin() {
  const [zoom, latitude, longitude] = location.hash.slice(1).split("/").map(Number);
  const isPlace = [zoom, latitude, longitude].every(Number.isFinite);
  if (isPlace) go(xOf(longitude), yOf(latitude), between(LEAST_ZOOM, Math.round(zoom), MOST_ZOOM));
  else fit(bounds);
  await loadOthers();
  const problem = problems.find((each) => String(each.id) === chosen);
  if (problem && !isPlace) fit(problem);
}

begin();
