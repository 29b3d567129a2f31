// Shows what a form would do: tests the connection to its OLT, or previews its import.
// Shows the fields of the chosen SNMP version.

const form = document.getElementById("olt-setup");
const result = document.getElementById("connection");

function tell(sentence, tone) {
  const line = document.createElement("p");
  line.className = `notice ${tone}`;
  line.textContent = sentence;
  result.replaceChildren(line);
}

const test = form.querySelector("button[data-test]");
test.addEventListener("click", async () => {
  test.disabled = true;
  tell(test.dataset.waiting, "");
  try {
    const answer = await fetch(test.dataset.test, { method: "POST", body: new FormData(form) });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    result.innerHTML = await answer.text();
  } catch {
    tell(test.dataset.failed, "bad");
  } finally {
    test.disabled = false;
  }
});
test.hidden = false;

const { version } = form.elements;
function showVersion() {
  for (const name of ["community", "v3_user", "v3_auth", "v3_auth_key", "v3_priv", "v3_priv_key"]) {
    form.elements[name].closest(".field").hidden = (name !== "community") !== (version.value === "3");
  }
}
if (version) {
  version.addEventListener("change", showVersion);
  showVersion();
}
