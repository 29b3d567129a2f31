// Places the explanation of a word beside it, within the window. Escape closes it.

const WIDTH = 340;
const GAP = 6;

function place(event) {
  const term = event.target.closest?.(".term");
  if (!term || term.contains(event.relatedTarget)) return;
  delete term.dataset.closed;
  const word = term.getBoundingClientRect();
  const meaning = term.querySelector(".term-meaning").style;
  const isLow = word.bottom > innerHeight * 0.6;
  meaning.setProperty("--term-left", `${Math.max(12, Math.min(word.left, innerWidth - WIDTH - 12))}px`);
  meaning.setProperty("--term-top", isLow ? "auto" : `${word.bottom + GAP}px`);
  meaning.setProperty("--term-bottom", isLow ? `${innerHeight - word.top + GAP}px` : "auto");
}

export function start() {
  document.addEventListener("pointerover", place);
  document.addEventListener("focusin", place);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const term of document.querySelectorAll(".term:hover, .term:focus-within")) term.dataset.closed = "";
  });
}
