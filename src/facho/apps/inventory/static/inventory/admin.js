// The clock of the header, in the zone of the installation; and the colours that were chosen in the dashboard.
(() => {
  // Both remember the choice under names of their own. Not a module: it must run before Alpine reads it.
  const chosen = localStorage.getItem("facho-theme");
  if (chosen === "light" || chosen === "dark") localStorage.setItem("_x_adminTheme", JSON.stringify(chosen));
  addEventListener("pagehide", () => {
    const theme = JSON.parse(localStorage.getItem("_x_adminTheme") ?? "null");
    if (theme === "light" || theme === "dark") localStorage.setItem("facho-theme", theme);
    else if (theme === "auto") localStorage.removeItem("facho-theme");
  });

  document.addEventListener("DOMContentLoaded", () => {
    const time = document.querySelector("#clock time");
    if (!time) return;
    // By the server's clock: that of the browser may be minutes off.
    const offset = Date.parse(time.dateTime) - Date.now();
    const parts = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
    let format;
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: time.dataset.zone });
    } catch {
      // A zone that the browser does not know: the time of the page stays.
      return;
    }
    setInterval(() => (time.textContent = format.format(Date.now() + offset)), 1000);
  });
})();
