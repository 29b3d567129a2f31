// On the form of a new job: set the default priority of the chosen type, until the user enters another one.
document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("id_kind");
  const priority = document.getElementById("id_priority");
  if (!kind || !priority || !priority.dataset.defaults) return;
  const defaults = JSON.parse(priority.dataset.defaults);
  let own = priority.value;
  const fill = () => {
    if (priority.value !== own) return;
    priority.value = defaults[kind.value] ?? "";
    own = priority.value;
  };
  if (priority.value === "") {
    kind.addEventListener("change", fill);
    fill();
  }
});
