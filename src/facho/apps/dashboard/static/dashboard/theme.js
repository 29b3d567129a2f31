// Light, dark or the setting of the system. Runs before the page is painted, to avoid a flash.
(() => {
  const chosen = localStorage.getItem("facho-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("js");
})();
