// Notes about an ONU: added, edited and deleted through the API.

import { toast } from "./actions.js";
import { logInAgain } from "./feed.js";
import { refreshSoon } from "./regions.js";
import { fill, text } from "./time.js";

const form = document.getElementById("note-form");
const field = document.getElementById("note-text");
// Address of the note that is being edited; empty for a new one.
let edited = "";

async function send(method, url, body) {
  const headers = { "X-CSRFToken": document.body.dataset.csrf, "Content-Type": "application/json" };
  try {
    const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
    if (answer.status === 401) logInAgain();
    if (answer.ok) {
      refreshSoon();
      return true;
    }
    const said = await answer.json().catch(() => ({}));
    toast(said.detail ?? said.text?.[0] ?? fill(text.failed, { status: answer.status }), "bad");
  } catch {
    toast(text.offline, "bad");
  }
  return false;
}

async function save(event) {
  event.preventDefault();
  const sent = await (edited ? send("PATCH", edited, { text: field.value }) : send("POST", form.action, { text: field.value }));
  if (!sent) return;
  edited = "";
  form.reset();
}

function act(event) {
  const { editNote, deleteNote } = event.target.dataset;
  if (editNote) {
    edited = editNote;
    field.value = event.target.closest("li").querySelector(".note-text").textContent;
    field.focus();
  } else if (deleteNote && confirm(text.deleteNote)) {
    send("DELETE", deleteNote);
  }
}

export function start() {
  if (!form) return;
  form.addEventListener("submit", save);
  document.addEventListener("click", act);
}
