// Starts a page: what it shows, what it listens to, and one tick a second for all that counts.

import * as actions from "./actions.js";
import { drawBusy } from "./busy.js";
import * as explain from "./explain.js";
import * as feed from "./feed.js";
import * as figures from "./figures.js";
import { draw, tickPool } from "./pool.js";
import * as power from "./power.js";
import * as regions from "./regions.js";
import { tick, write, zone } from "./time.js";

const hasPool = document.getElementById("pollers") !== null;

function show(snapshot) {
  // First: what is drawn depends on whether it is old.
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
feed.on("execution", regions.news);
feed.on("readings", regions.news);
feed.start();
power.start();
figures.start();
explain.start();
actions.start({ afterRun: regions.refreshSoon });

setInterval(() => {
  if (document.hidden) return;
  tick();
  if (hasPool) tickPool();
  feed.judge();
}, 1000);
