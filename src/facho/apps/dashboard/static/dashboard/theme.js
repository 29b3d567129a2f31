// Light, dark or the setting of the system, and the time zone for the server. Runs before the page is painted, to avoid a flash.
(() => {
  const chosen = localStorage.getItem("facho-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("js");
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `facho_zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
})();
