// Light, dark or as the system says. Runs before the page is painted, so that nothing flashes.
(() => {
  const chosen = localStorage.getItem("facho-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("js");
})();
