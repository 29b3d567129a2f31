// Actions of the user: run a node, open a menu, choose the colours.

import { logInAgain } from "./feed.js";
import { fill, text } from "./time.js";

const SHOWN_FOR = 7000;

/** Show a message for a few seconds. */
export function toast(sentence, tone) {
  const element = document.createElement("p");
  element.className = `toast ${tone}`;
  element.textContent = sentence;
  document.getElementById("toasts").append(element);
  setTimeout(() => element.remove(), SHOWN_FOR);
}

async function run(button) {
  button.disabled = true;
  try {
    const answer = await fetch(button.dataset.run, {
      method: "POST",
      headers: { "X-CSRFToken": document.body.dataset.csrf, Accept: "application/json" },
    });
    const body = await answer.json().catch(() => ({}));
    const sentence = typeof body.detail === "string" ? body.detail : "";
    if (answer.status === 401) logInAgain();
    else if (answer.ok) toast(button.dataset.done ?? (body.already_requested ? text.askedAlready : text.asked), "ok");
    else toast(sentence || fill(text.failed, { status: answer.status }), answer.status === 409 ? "warn" : "bad");
  } catch {
    toast(text.offline, "bad");
  } finally {
    button.disabled = false;
  }
}

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("facho-theme", root.dataset.theme);
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== except) menu.open = false;
}

export function start({ afterRun }) {
  document.getElementById("theme-toggle").addEventListener("click", toggleTheme);
  document.addEventListener("click", async (event) => {
    closeMenus(event.target.closest("details.menu"));
    const button = event.target.closest("button[data-run]");
    if (!button) return;
    await run(button);
    afterRun();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus(null);
  });
}
