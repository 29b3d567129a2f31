// Time by the server's clock, and formats. The clock of the browser may be minutes off.

export const boot = JSON.parse(document.getElementById("boot").textContent);
export const text = boot.text;

let offset = Date.parse(boot.now) - Date.now();

/** Milliseconds since 1970, by the server's clock. */
export function now() {
  return Date.now() + offset;
}

/** A notification takes a moment to arrive, so the largest observed difference is the most accurate one. */
export function observe(at) {
  if (at) offset = Math.max(offset, Date.parse(at) - Date.now());
}

/** Put values into a text: fill("{n} s", {n: 3}). Values are text, never markup. */
export function fill(pattern, values) {
  return pattern.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

/** A span in its largest unit: 12 s, 5 min, 3 h, 2 d. */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return fill(text.units.s, { n: whole });
  if (whole < 3600) return fill(text.units.min, { n: Math.floor(whole / 60) });
  if (whole < 172800) return fill(text.units.h, { n: Math.floor(whole / 3600) });
  return fill(text.units.d, { n: Math.floor(whole / 86400) });
}

/** A running time: in seconds up to 1000 s. */
export function running(seconds) {
  return seconds < 1000 ? fill(text.units.s, { n: Math.max(0, Math.floor(seconds)) }) : span(seconds);
}

// The language of the page includes the region, as the server chose it: both use the same formats.
const language = document.documentElement.lang || undefined;
const minutes = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const seconds = { ...minutes, second: "2-digit" };
const dates = { day: "numeric", month: "short", year: "numeric" };
const full = new Intl.DateTimeFormat(language, { ...dates, ...seconds });
const zoned = new Intl.DateTimeFormat(language, { ...dates, ...seconds, timeZoneName: "short" });
const hour = new Intl.DateTimeFormat(language, minutes);
const second = new Intl.DateTimeFormat(language, seconds);
const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short" });
const numbers = new Map();

/** A point in time, in the user's zone. */
export const formats = {
  full: (ms) => full.format(ms),
  hour: (ms) => hour.format(ms),
  second: (ms) => second.format(ms),
  day: (ms) => day.format(ms),
};

/** The name of the user's zone. */
export const zone = full.resolvedOptions().timeZone;

/** The short name of the user's zone at a time: GMT-5, UTC. */
export const zoneName = (ms) => zoned.formatToParts(ms).find((part) => part.type === "timeZoneName").value;

/** A number with at most so many decimals, in the format of the region. */
export function number(value, decimals = 0) {
  if (!numbers.has(decimals)) {
    numbers.set(decimals, new Intl.NumberFormat(language, { maximumFractionDigits: decimals, useGrouping: "always" }));
  }
  // Without the sign of a negative zero.
  return numbers.get(decimals).format(value + 0);
}

const writers = {
  age: (ms) => fill(text.ago, { span: span((now() - ms) / 1000) }),
  due: (ms) => (ms > now() ? fill(text.ahead, { span: span((ms - now()) / 1000) }) : text.due),
  running: (ms) => running((now() - ms) / 1000),
  clock: (ms) => full.format(ms),
  hour: (ms) => hour.format(ms),
  second: (ms) => second.format(ms),
};

/** Update every time of the page; called once a second and after each refresh. */
export function tick(root = document) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const kind = Object.keys(writers).find((name) => name in element.dataset);
    const ms = Date.parse(element.dateTime);
    if (!kind || Number.isNaN(ms)) continue;
    write(element, writers[kind](ms));
    if (!element.title) element.title = zoned.format(ms);
  }
}

/** Change a text only if it differs, because a write removes the user's selection. */
export function write(element, value) {
  if (element && element.textContent !== value) element.textContent = value;
}
