// Starts a page: drawing, notifications, and one tick per second.

import * as actions from "./actions.js";
import { drawBusy } from "./busy.js";
import * as explain from "./explain.js";
import * as feed from "./feed.js";
import * as figures from "./figures.js";
import { draw, tickPool } from "./pool.js";
import * as regions from "./regions.js";
import * as search from "./search.js";
import { tick, write, zone } from "./time.js";

const hasPool = document.getElementById("pollers") !== null;

function show(snapshot) {
  // First, because drawing depends on the age of the data.
  feed.judge();
  if (hasPool) {
    draw(snapshot);
    drawBusy(snapshot);
  }
}

write(document.getElementById("zone"), zone);
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
actions.start({ afterRun: regions.refreshSoon });

setInterval(() => {
  if (document.hidden) return;
  tick();
  if (hasPool) tickPool();
  feed.judge();
}, 1000);
