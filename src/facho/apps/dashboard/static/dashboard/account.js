// Copies the key of a new token, and saves recovery codes. The buttons are hidden until they work.

import { toast } from "./actions.js";

for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      toast(button.dataset.done, "ok");
    } catch {
      // Without https there is no clipboard: the key is selected, to be copied by hand.
      getSelection().selectAllChildren(source);
    }
  });
  button.hidden = false;
}

for (const button of document.querySelectorAll("button[data-download]")) {
  const source = document.getElementById(button.dataset.download);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([source.textContent], { type: "text/plain" }));
    link.download = button.dataset.file;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  button.hidden = false;
}
