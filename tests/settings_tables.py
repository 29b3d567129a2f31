"""Writes the tables of settings in both READMEs from their declarations: `python3 dev.py settings`."""

from pathlib import Path

from facho.runtime.config import SETTINGS, Choice, Number, Setting

ROOT = Path(__file__).resolve().parent.parent
READMES = {"en": ROOT / "README.md", "es": ROOT / "README.es.md"}
TITLES = {
    "en": ("variable", "default", "values", "meaning"),
    "es": ("variable", "por defecto", "valores", "significado"),
}
START, END = "<!-- settings -->\n", "<!-- end -->\n"


def main() -> None:
    for language, path in READMES.items():
        path.write_text(with_table(path.read_text(), language))


def with_table(readme: str, language: str) -> str:
    """Return a README with the current table between the comments."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return before + START + table(language) + END + after


def table(language: str) -> str:
    rows = [TITLES[language], ("---",) * 4, *(row(each, language) for each in SETTINGS.values())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(setting: Setting, language: str) -> tuple[str, ...]:
    english, spanish = setting.automatic
    default = f"`{setting.default}`" if setting.default else {"en": english, "es": spanish}[language]
    meaning = {"en": setting.english, "es": setting.spanish}[language]
    return f"`{setting.variable}`", default, values(setting), meaning


def values(setting: Setting) -> str:
    if isinstance(setting.read, Number):
        return f"{setting.read.low}–{setting.read.high}"
    if isinstance(setting.read, Choice):
        return ", ".join(f"`{word}`" for word in setting.read.words)
    return ""


if __name__ == "__main__":
    main()
