// Read now: asks the OLT for one ONU, and shows what the request waits for until it is answered.

import { logInAgain } from "./feed.js";
import { refreshSoon } from "./regions.js";
import { boot, fill, formats, number, text } from "./time.js";

const POLL_EVERY = 700;

const button = document.getElementById("read-now");
const status = document.getElementById("read-status");

function tell(sentence, tone = "") {
  status.className = `read-status ${tone}`;
  if (status.textContent !== sentence) status.textContent = sentence;
}

async function json(answer) {
  if (answer.status === 401) logInAgain();
  return answer.json().catch(() => ({}));
}

async function ask() {
  const headers = { "X-CSRFToken": document.body.dataset.csrf, Accept: "application/json" };
  let answer = await fetch(`${button.dataset.url}?wait=0`, { method: "POST", headers });
  let question = await json(answer);
  while (answer.ok && ["pending", "running"].includes(question.state)) {
    tell(question.progress);
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY));
    answer = await fetch(question.url, { headers: { Accept: "application/json" }, cache: "no-store" });
    question = await json(answer);
  }
  return { answer, question };
}

/** Return the result in a sentence: when it was read, how many values, and which are missing. */
function resultOf({ answer, answered_at: at }) {
  const count = Object.values(answer.values).filter((value) => value !== null).length;
  const parts = [fill(text.read.values, { n: number(count) })];
  if (answer.unanswered.length) {
    const names = answer.unanswered.map((name) => boot.columns[name] ?? name).join(", ");
    parts.push(fill(text.read.unanswered, { n: number(answer.unanswered.length), names }));
  }
  const said = fill(text.read.done, { time: formats.second(Date.parse(at)), what: parts.join(", ") });
  return answer.onu === Number(button.dataset.onu) ? said : `${said} ${text.read.other}`;
}

async function read() {
  button.disabled = true;
  tell(text.read.sending);
  try {
    const { answer, question } = await ask();
    if (!answer.ok) tell(question.detail ?? fill(text.failed, { status: answer.status }), "warn");
    else if (question.error) tell(question.error, "bad");
    else tell(resultOf(question), "ok");
  } catch {
    tell(text.offline, "bad");
  } finally {
    button.disabled = false;
    refreshSoon();
  }
}

export function start() {
  button?.addEventListener("click", read);
}
