// A question that is not answered yet: the page is fetched again every two seconds, also without any notification.

import { refreshSoon } from "./regions.js";

setInterval(() => {
  if (!document.hidden && document.querySelector("[data-running]")) refreshSoon();
}, 2000);
