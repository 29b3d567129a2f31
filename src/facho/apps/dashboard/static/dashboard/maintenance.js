// The form of a new maintenance: its times are those of the browser's zone.

const form = document.getElementById("maintenance-form");

function local(date) {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

if (form && "new" in form.dataset) {
  const { starts_at: start, ends_at: end, zone } = form.elements;
  const length = Date.parse(end.value) - Date.parse(start.value);
  const now = new Date();
  zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
  start.value = local(now);
  end.value = local(new Date(now.getTime() + length));
}
