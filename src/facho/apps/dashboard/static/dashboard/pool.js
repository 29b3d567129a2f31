// Pollers, queue and numbers of the overview, drawn from the engine's snapshots. Names come from users and
// devices, so they are written as text, never as markup.

import { feed } from "./feed.js";
import { fill, now, number, running, span, text, write } from "./time.js";

// More than these are drawn smaller.
const ROOMY = 24;
// Later than this counts as delayed.
const DELAYED_AFTER = 5;

// Whether the user has opened the strip.
const OPENED = "facho-pool";

const byId = (id) => document.getElementById(id);
const slot = (element, name) => element.querySelector(`[data-slot="${name}"]`);
const oltPage = (olt) => `/olts/${Number(olt)}/`;

/** Create one element per item from a template, and update each with `draw`. */
function each(list, template, items, draw) {
  while (list.children.length > items.length) list.lastElementChild.remove();
  while (list.children.length < items.length) list.append(template.content.firstElementChild.cloneNode(true));
  items.forEach((item, position) => draw(list.children[position], item));
}

/** The name of a job: translated if Facho made it, as written if a user did. */
const jobLabel = (name) => text.jobs[name] ?? name;

function link(element, olt, name) {
  write(element, name ?? "");
  if (olt) element.href = oltPage(olt);
  else element.removeAttribute("href");
}

function drawPoller(element, poller) {
  const isBusy = poller.status === "BUSY";
  const status = element.querySelector(".poller-status");
  element.classList.toggle("busy", isBusy);
  write(status, isBusy ? status.dataset.busy : status.dataset.free);
  write(slot(element, "id"), String(poller.id));
  link(slot(element, "olt"), poller.olt_id, poller.olt);
  write(slot(element, "node"), jobLabel(poller.node ?? ""));
  write(slot(element, "link"), isBusy ? fill(text.linkOf, { n: poller.link, m: poller.links }) : "");
  drawSteps(element.querySelector(".steps"), poller.link ?? 0, poller.links ?? 0);
  drawSeconds(element, poller);
}

function drawSteps(element, done, all) {
  while (element.children.length > all) element.lastElementChild.remove();
  while (element.children.length < all) element.append(document.createElement("i"));
  [...element.children].forEach((step, position) => step.classList.toggle("on", position < done));
}

function drawSeconds(element, poller) {
  // With old data the counter stops.
  const until = feed.isStale ? Date.parse(feed.snapshot.at) : now();
  const seconds = poller.busy_since ? running((until - Date.parse(poller.busy_since)) / 1000) : "";
  write(slot(element, "seconds"), seconds);
}

function drawWaiting(element, waiting) {
  write(slot(element, "node"), jobLabel(waiting.node));
  link(slot(element, "olt"), waiting.olt_id, waiting.olt);
  const what = text.waitingFor[waiting.waiting_for] ?? waiting.waiting_for;
  write(slot(element, "why"), what ? fill(text.waits, { what }) : "");
  write(slot(element, "priority"), String(waiting.priority));
  write(slot(element, "trigger"), text.trigger[waiting.trigger] ?? waiting.trigger);
  write(slot(element, "links"), waiting.links === 1 ? text.oneLink : fill(text.links, { n: waiting.links }));
  drawLate(element, waiting);
}

function drawLate(element, waiting) {
  const late = (now() - Date.parse(waiting.slot)) / 1000;
  element.classList.toggle("late", late > DELAYED_AFTER);
  write(slot(element, "late"), fill(text.late, { span: span(late) }));
}

/** Pollers grouped by worker, workers sorted by name, so that the others keep their place when one joins or leaves. */
function byWorker(pollers) {
  const workers = new Map();
  for (const poller of pollers) {
    const name = poller.worker ?? "";
    if (!workers.has(name)) workers.set(name, []);
    workers.get(name).push(poller);
  }
  const names = [...workers.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  return names.map((name) => ({ name, pollers: workers.get(name) }));
}

function drawWorker(element, { name, pollers }, isDense) {
  const busy = pollers.filter(({ status }) => status === "BUSY").length;
  // In a single process there are no workers to show.
  element.querySelector(".worker-head").hidden = !name;
  write(slot(element, "worker"), name);
  write(slot(element, "host"), pollers[0].host ? fill(text.onHost, { host: pollers[0].host }) : "");
  write(slot(element, "busy"), fill(text.busyOf, { n: number(busy), m: number(pollers.length) }));
  const list = element.querySelector(".pollers");
  list.classList.toggle("dense", isDense);
  each(list, byId("poller-template"), pollers, drawPoller);
}

function drawEmpty(isEmpty, at) {
  const note = byId("pollers-empty");
  note.hidden = !isEmpty;
  // A running engine without pollers has no worker yet. If the engine does not report, nothing is known.
  if (isEmpty && at && !feed.isStale) write(note, note.dataset.unheard);
}

/** Draw a snapshot. */
export function draw({ at, pollers, queue, stats }) {
  const isDense = pollers.length > ROOMY;
  each(byId("pollers"), byId("worker-template"), byWorker(pollers), (element, worker) => drawWorker(element, worker, isDense));
  drawEmpty(pollers.length === 0, at);
  drawCells(byWorker(pollers).flatMap((worker) => worker.pollers));
  byId("pool-delayed").classList.toggle("late", stats.delayed > 0);
  each(byId("queue"), byId("queue-template"), queue.next, drawWaiting);
  byId("queue-empty").hidden = queue.next.length > 0;
  for (const element of document.querySelectorAll("[data-stat]")) {
    const value = stats[element.dataset.stat];
    write(element, pollers.length ? number(value) : "–");
  }
  drawSaturation(stats, pollers.length > 0);
}

/** One cell per poller, for the strip. */
function drawCells(pollers) {
  const cells = byId("pool-cells");
  while (cells.children.length > pollers.length) cells.lastElementChild.remove();
  while (cells.children.length < pollers.length) cells.append(document.createElement("i"));
  pollers.forEach(({ status }, position) => cells.children[position].classList.toggle("on", status === "BUSY"));
}

function drawSaturation(stats, isKnown) {
  const badge = byId("saturation");
  if (!isKnown) return;
  write(badge, stats.is_saturated ? badge.dataset.saturated : badge.dataset.calm);
  badge.className = `badge ${stats.is_saturated ? "bad" : "ok"}`;
}

/** Update the seconds between two snapshots. */
export function tickPool() {
  const { pollers, queue } = feed.snapshot;
  const elements = byId("pollers").querySelectorAll(".poller");
  const shown = byWorker(pollers).flatMap((worker) => worker.pollers);
  shown.forEach((poller, position) => drawSeconds(elements[position], poller));
  queue.next.forEach((waiting, position) => drawLate(byId("queue").children[position], waiting));
}

const pool = byId("pool");
if (pool) {
  pool.open = localStorage.getItem(OPENED) === "yes";
  pool.addEventListener("toggle", () => localStorage.setItem(OPENED, pool.open ? "yes" : "no"));
}
