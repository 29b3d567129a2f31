// Starts a page: drawing, notifications, and one tick per second.

import * as actions from "./actions.js";
import { drawBusy } from "./busy.js";
import * as explain from "./explain.js";
import * as feed from "./feed.js";
import * as figures from "./figures.js";
import { draw, tickPool } from "./pool.js";
import * as regions from "./regions.js";
import * as search from "./search.js";
import * as terms from "./terms.js";
import { formats, now, tick, write, zone, zoneName } from "./time.js";

const hasPool = document.getElementById("pollers") !== null;

function show(snapshot) {
  // First, because drawing depends on the age of the data.
  feed.judge();
  if (hasPool) {
    draw(snapshot);
    drawBusy(snapshot);
  }
}

/** The clock of the header, in the zone of the times on the page, which it names. */
function tickClock() {
  const [time, name] = document.getElementById("clock").children;
  write(time, formats.second(now()));
  write(name, zoneName(now()));
}

for (const element of document.querySelectorAll("[data-zone]")) write(element, zone);
tickClock();
regions.start();
tick();
show(feed.feed.snapshot);
feed.on("snapshot", show);
feed.on("execution", regions.changed);
feed.on("readings", regions.changed);
feed.on("problems", regions.changed);
feed.start();
figures.start();
explain.start();
search.start();
terms.start();
actions.start({ afterRun: regions.refreshSoon });

setInterval(() => {
  if (document.hidden) return;
  tick();
  tickClock();
  if (hasPool) tickPool();
  feed.judge();
}, 1000);
