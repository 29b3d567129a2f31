// How busy the pool is: minutes from the database, then second by second as the news comes.

import { drawChart } from "./chart.js";
import { boot, formats, now, text } from "./time.js";

const points = boot.busy ? boot.busy.minutes.slice() : [];
const container = document.getElementById("busy-chart");

/** The mean over a minute at each of the samples, which are a second apart and end at `at`. */
function means(samples, at) {
  let sum = 0;
  return samples.map((sample, position) => {
    sum += sample;
    return [at - (samples.length - 1 - position) * 1000, sum / (position + 1)];
  });
}

function redraw() {
  const to = Math.max(now(), points.at(-1)?.[0] ?? 0);
  const from = to - boot.busy.span * 1000;
  while (points.length && points[0][0] < from) points.shift();
  const [above, until] = [boot.busy.above, boot.busy.until];
  drawChart(container, {
    from,
    to,
    low: 0,
    high: 100,
    series: [{ name: "busy", label: text.chart.busy, points }],
    limits: [
      { value: above, label: `${above} %`, name: "bad" },
      { value: until, label: `${until} %`, name: "calm", under: true },
    ],
    gap: 150000,
    area: true,
    unit: "%",
    xLabel: formats.hour,
    tip: formats.full,
  });
}

/** Add what a snapshot says and draw. */
export function drawBusy({ at, stats }) {
  if (!container) return;
  const time = at ? Date.parse(at) : null;
  const newest = points.at(-1)?.[0] ?? 0;
  if (time !== null && time > newest) {
    // After a pause, or at the start, the samples tell of the minute that was missed.
    const missed = time - newest > 2000 ? means(stats.samples, time).filter(([ms]) => ms > newest) : [];
    points.push(...missed.slice(0, -1), [time, stats.busy_percentage]);
  }
  redraw();
}

if (container) new ResizeObserver(redraw).observe(container);
