// Notifications of the engine over one event stream, and their age.

import { boot, fill, now, observe, span, text, write } from "./time.js";

// Streams end now and then; only a longer gap is shown.
const LOST_AFTER = 5000;
const LONGEST_PAUSE = 30000;

export const feed = { snapshot: boot.snapshot, isStale: boot.snapshot.stale };

const listeners = { snapshot: [], execution: [], readings: [], problems: [] };
let source = null;
let lostSince = null;
let pause = 3000;
let everOpen = false;
let shown = "";

/** Call a listener with the payload of each notification of a topic. */
export function on(topic, listener) {
  listeners[topic].push(listener);
}

function notify(topic, payload) {
  if (topic === "snapshot") {
    feed.snapshot = payload;
    observe(payload.at);
  }
  for (const listener of listeners[topic]) listener(payload);
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource(document.body.dataset.events);
  source.onopen = () => {
    lostSince = null;
    everOpen = true;
    pause = 3000;
    judge();
  };
  source.onerror = () => {
    lostSince ??= Date.now();
    // The browser reconnects by itself, except after an error response.
    if (source.readyState === EventSource.CLOSED) comeAgain();
    judge();
  };
  for (const topic of Object.keys(listeners)) {
    source.addEventListener(topic, (event) => notify(topic, JSON.parse(event.data)));
  }
}

function close() {
  source?.close();
  source = null;
}

function comeAgain() {
  close();
  setTimeout(async () => {
    if (await isLoggedOut()) logInAgain();
    else open();
  }, pause);
  pause = Math.min(pause * 2, LONGEST_PAUSE);
}

/** Leave a page whose session has ended, and come back to it after the login. */
export function logInAgain() {
  const here = encodeURIComponent(location.pathname + location.search);
  location.assign(`${document.body.dataset.login}?ended&next=${here}`);
}

async function isLoggedOut() {
  try {
    const answer = await fetch(document.body.dataset.events, { method: "HEAD", cache: "no-store" });
    return answer.status === 401;
  } catch {
    return false;
  }
}

/** Show the age of the data in the header, the banner and the style sheet. */
export function judge() {
  const lostFor = lostSince === null ? 0 : Date.now() - lostSince;
  const isLost = lostFor > LOST_AFTER;
  const at = feed.snapshot.at ? Date.parse(feed.snapshot.at) : null;
  const age = at === null ? null : (now() - at) / 1000;
  feed.isStale = age === null || age > boot.staleAfter;
  document.body.classList.toggle("is-stale", feed.isStale || isLost);
  const connection = isLost ? "lost" : everOpen ? "live" : "connecting";
  chip("connection-state", text.connection[connection], { live: "ok", connecting: "quiet", lost: "bad" }[connection]);
  const engine = feed.isStale || isLost ? "stale" : feed.snapshot.stats.is_saturated ? "saturated" : "live";
  chip("engine-state", text.engine[engine], { live: "ok", saturated: "warn", stale: "bad" }[engine]);
  if (isLost) banner("lost", lostFor / 1000);
  else if (feed.isStale) banner(age === null ? "never" : "stale", age ?? 0);
  else banner("", 0);
}

function chip(id, label, tone) {
  const element = document.getElementById(id);
  element.dataset.tone = tone;
  write(element.lastElementChild, label);
}

function banner(kind, seconds) {
  const element = document.getElementById("banner");
  const sentence = kind ? fill(text.banner[kind], { span: span(seconds) }) : "";
  element.hidden = !kind;
  write(element, sentence);
  if (kind !== shown) write(document.getElementById("banner-announced"), sentence);
  shown = kind;
}

/** Listen while the page is visible. Browsers allow few streams per site, so a hidden tab closes its own. */
export function start() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else {
      lostSince = null;
      open();
    }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
  judge();
}
