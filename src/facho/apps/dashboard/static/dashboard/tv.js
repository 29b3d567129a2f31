// TV mode: panels in rotation, a clock, and a sound for a new critical problem.

import * as feed from "./feed.js";
import * as regions from "./regions.js";
import { formats, now, tick, write } from "./time.js";

const TURN = 15000;
// Browsers play sounds only after a click, except those that were started for a kiosk.
const SOUND = "facho-tv-sound";
// Seconds after the start, and pitch in hertz.
const TONES = [
  [0, 880],
  [0.3, 660],
  [0.6, 880],
];

const byId = (id) => document.getElementById(id);
const panels = () => [...document.querySelectorAll(".tv-panel")];
const criticals = () => byId("tv-panels").dataset.critical.split(" ").filter(Boolean);

let shown = 0;
let turnAt = 0;
let isPaused = false;
let known = new Set(criticals());
let speaker = null;
const version = byId("tv-version").textContent;

/** Show one panel. After the last one comes the first. */
function show(position) {
  const all = panels();
  if (!all.length) return;
  shown = (position + all.length) % all.length;
  all.forEach((panel, at) => {
    panel.hidden = at !== shown;
  });
  write(byId("tv-position"), `${shown + 1} / ${all.length}`);
}

function turn(step) {
  show(shown + step);
  turnAt = performance.now() + TURN;
}

function pause() {
  isPaused = !isPaused;
  byId("tv-pause").setAttribute("aria-pressed", String(isPaused));
}

/** Draw the panels after a refresh. A new critical problem is shown at once. */
function refreshed() {
  const present = criticals();
  const isNew = present.some((id) => !known.has(id));
  known = new Set(present);
  if (isNew) {
    turn(-shown);
    byId("tv-panels").classList.add("alarm");
    ring();
  } else {
    show(shown);
  }
  // After an upgrade, scripts and styles are loaded again.
  if (byId("tv-version").textContent !== version) location.reload();
}

function ring() {
  if (speaker?.state !== "running") return;
  for (const [after, frequency] of TONES) {
    const tone = new OscillatorNode(speaker, { frequency });
    tone.connect(new GainNode(speaker, { gain: 0.2 })).connect(speaker.destination);
    tone.start(speaker.currentTime + after);
    tone.stop(speaker.currentTime + after + 0.2);
  }
}

function drawSound() {
  const button = byId("tv-sound");
  const isOn = speaker?.state === "running";
  button.setAttribute("aria-pressed", String(isOn));
  write(button, isOn ? button.dataset.on : button.dataset.off);
}

function openSpeaker() {
  speaker = new AudioContext();
  speaker.addEventListener("statechange", drawSound);
}

/** Turn the sound on, with one ring to hear it, or off. */
async function toggleSound() {
  if (speaker?.state === "running") {
    localStorage.removeItem(SOUND);
    await speaker.suspend();
    return;
  }
  if (!speaker) openSpeaker();
  await speaker.resume();
  localStorage.setItem(SOUND, "on");
  ring();
}

function press(event) {
  // On a button, the space bar presses it.
  if (event.key === " " && event.target.matches("button, a")) return;
  const action = { ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), " ": pause }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

byId("tv-sound").addEventListener("click", toggleSound);
byId("tv-pause").addEventListener("click", pause);
document.addEventListener("keydown", press);
document.addEventListener("facho:refreshed", refreshed);

regions.start();
tick();
turn(0);
if (localStorage.getItem(SOUND)) openSpeaker();
feed.on("snapshot", feed.judge);
for (const topic of ["execution", "readings", "problems"]) feed.on(topic, regions.changed);
feed.start();

function everySecond() {
  tick();
  feed.judge();
  write(byId("tv-clock"), formats.hour(now()));
  if (!isPaused && performance.now() >= turnAt) turn(1);
}

everySecond();
setInterval(everySecond, 1000);
