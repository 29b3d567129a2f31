// Tries the job of the form on an OLT: sends the current values to the API and shows the answer.

const POLL_EVERY = 1000;

const text = () => JSON.parse(document.getElementById("try-text").textContent);

/** Return an element with text. Values of an OLT never become HTML. */
function element(tag, content = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = content;
  made.className = className;
  return made;
}

/** Return a number in the format of the page's region. */
function number(value) {
  return value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 6, useGrouping: "always" });
}

function field(name) {
  return document.querySelector(`form [name="${name}"]`);
}

/** Return the raw OIDs of the form, without those that are marked for deletion or empty. */
function rawOids() {
  const oids = [];
  for (const input of document.querySelectorAll('form [name^="oids-"][name$="-oid"]')) {
    const part = (name) => field(input.name.replace(/-oid$/, `-${name}`));
    const isLeftOut = input.name.includes("__prefix__") || part("DELETE")?.checked;
    if (isLeftOut || (!input.value && !part("name").value)) continue;
    oids.push({
      name: part("name").value,
      oid: input.value,
      decode: part("decode").value,
      unit: part("unit").value,
      scalar: part("scalar").checked,
    });
  }
  return oids;
}

function body(section, olt) {
  const columns = [...(field("columns")?.selectedOptions ?? [])].map((option) => option.value);
  const brand = field("brand")?.value ?? section.dataset.brand;
  return { olt: Number(olt.value), brand, kind: field("kind").value, columns, oids: rawOids() };
}

async function ask(section, olt) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": field("csrfmiddlewaretoken").value };
  let answer = await fetch(section.dataset.url, { method: "POST", headers, body: JSON.stringify(body(section, olt)) });
  let question = await answer.json();
  while (answer.ok && ["pending", "running"].includes(question.state)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY));
    answer = await fetch(question.url);
    question = await answer.json();
  }
  return { isOk: answer.ok, question };
}

/** Return the messages of a validation error, each with its field. */
function refusals(problems, path = "") {
  if (typeof problems === "string") return [path ? `${path}: ${problems}` : problems];
  return Object.entries(problems ?? {}).flatMap(([name, rest]) =>
    refusals(rest, Array.isArray(problems) ? path : [path, name].filter(Boolean).join(".")),
  );
}

function table(column, unit) {
  const words = text();
  const rows = element("table");
  const head = rows.createTHead().insertRow();
  for (const name of [words.onu, words.type, words.raw, words.value]) head.append(element("th", name));
  const tbody = rows.createTBody();
  for (const row of column.rows) {
    const line = tbody.insertRow();
    const value = row.value === null ? words.none : typeof row.value === "number" ? `${number(row.value)} ${unit}`.trim() : String(row.value);
    for (const cell of [row.onu || row.index || "–", row.type, row.raw, value]) line.append(element("td", cell));
  }
  return rows;
}

function show(target, { isOk, question }) {
  const words = text();
  target.replaceChildren();
  if (!isOk || question.error) {
    const sentences = isOk ? [question.error] : refusals(question);
    target.append(...sentences.map((sentence) => element("p", sentence, "grave")));
    return;
  }
  const units = Object.fromEntries(rawOids().map(({ name, unit }) => [name, unit]));
  for (const problem of question.answer.problems) target.append(element("p", problem, "grave"));
  for (const column of question.answer.columns) {
    const title = element("h2", `${words.columns[column.name] ?? column.name} `);
    title.append(element("small", [column.oid, column.decode].filter(Boolean).join(" · "), "faint"));
    target.append(title);
    if (column.remark) target.append(element("p", column.remark, "grave"));
    if (column.rows.length) target.append(table(column, units[column.name] ?? ""));
  }
  const cost = words.cost.replace("{n}", number(question.answer.requests)).replace("{seconds}", number(question.answer.seconds));
  target.append(element("p", cost, "faint"));
}

function offerOlts(section, olt) {
  const brand = field("brand")?.value ?? section.dataset.brand;
  for (const option of olt.options) option.hidden = option.disabled = option.dataset.brand !== brand;
  if (olt.selectedOptions[0]?.disabled ?? true) olt.value = [...olt.options].find((each) => !each.disabled)?.value ?? "";
}

function start() {
  const section = document.getElementById("try-now");
  if (!section) return;
  const [olt, button, target] = ["try-olt", "try-button", "try-answer"].map((id) => document.getElementById(id));
  offerOlts(section, olt);
  document.addEventListener("change", (event) => event.target.name === "brand" && offerOlts(section, olt));
  button.addEventListener("click", async () => {
    const words = text();
    if (!olt.value) {
      target.replaceChildren(element("p", words.noOlt, "grave"));
      return;
    }
    button.disabled = true;
    target.replaceChildren(element("p", words.asking, "faint"));
    try {
      show(target, await ask(section, olt));
    } catch {
      target.replaceChildren(element("p", words.offline, "grave"));
    } finally {
      button.disabled = false;
    }
  });
}

document.addEventListener("DOMContentLoaded", start);
