"""Texts use the plain words of docs/wording.md: messages, templates, catalogues, docstrings, comments, names, docs."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "facho"
TESTS = ROOT / "tests"
PO = SOURCE / "locale" / "es" / "LC_MESSAGES" / "django.po"

# Words that have a plain replacement in every text, also in comments and in names of tests.
DIALECT = (
    r"anew",
    r"oftener",
    r"thrice",
    r"for ever",
    r"in vain",
    r"who(so)?ever",
    r"(is|are|was|were) away",
    r"what waits",
    r"nobody begins",
    r"(says?|said) so",
    r"dear (for|to)",
    r"lest",
    r"(stand|stands|stood) still",
    r"goes? in and never comes? out",
    r"what (stands|is) in the way",
    r"by whom",
    r"(is|are|was|were) told by",
    r"left out, (it|they|there|the)",
)
# Words that users must not read. Docstrings and docs may still have them.
OF_MESSAGES = (
    *DIALECT,
    r"nobody",
    r"somebody",
    r"whom",
    r"(is|are|was) told",
    r"what (became|becomes) of",
    r"vanish\w*",
    r"(is|are|was|were) gone",
    r"made-up",
    r"heard of",
    r"come along|comes along",
    r"at hand",
    r"by hand",
    r"looks? after|looked after",
    r"stands? (above|below|by|in)",
    r"(?<!there )(is|are) no (?!longer)",
    r"gave no answer",
    r"asks? (it|us)",
    r"suffers?",
    r"carries the news",
    r"at work on",
    r"what became of",
    r"the rest is what",
    r"as the engine last told",
)
OF_SPANISH = (
    r"quienquiera",
    r"en vano",
    r"da(r|do)? señales",
    r"dar? noticias",
    r"hay noticias",
    r"inventad[oa]s?",
    r"labor(es)?",
    r"ficheros?",
    r"ordenador(es)?",
    r"vosotros",
)

# The names of counters, not sentences: `SnmpPort.dropped` counts messages by them.
COUNTERS = {"nobody there was asked"}


def pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)


def python_files() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        # An applied migration is not changed for its docstring.
        if "migrations" not in path.parts:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment of a Python, JavaScript or CSS file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    else:
        for found in re.finditer(r"/\*.*?\*/|(?<!:)//.*", text, re.DOTALL if path.suffix == ".css" else 0):
            yield text.count("\n", 0, found.start()) + 1, found[0]


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    values = [statement.value for statement in first if isinstance(statement, ast.Expr)]
    return [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string that is not a docstring; identifiers have no space."""
    skipped = set(map(id, docstrings(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            text = node.value.strip()
            if " " in text and text not in COUNTERS:
                yield node.lineno, node.value


def catalogue() -> list[tuple[str, str]]:
    """Return each entry as its English and its Spanish text."""
    entries = []
    for block in PO.read_text(encoding="utf-8").split("\n\n")[1:]:
        fields: dict[str, str] = {}
        name = ""
        for keyword, text in re.findall(r'^(?:(\w+)(?:\[\d\])? )?(".*")$', block, re.MULTILINE):
            name = keyword or name
            fields[name] = fields.get(name, "") + ast.literal_eval(text)
        entries.append((fields["msgid"] + " " + fields.get("msgid_plural", ""), fields["msgstr"]))
    return entries


def found(text: str, words: re.Pattern[str], where: str) -> list[str]:
    return [f"{where}: {match[0]!r} in {text[:100]!r}" for match in words.finditer(text)]


def test_messages_use_plain_words():
    words = pattern(OF_MESSAGES)
    complaints = [
        complaint
        for path, tree in python_files()
        for line, text in messages(tree)
        for complaint in found(text, words, f"{path.relative_to(ROOT)}:{line}")
    ]

    assert complaints == []


def test_templates_use_plain_words():
    words = pattern(OF_MESSAGES)
    files = sorted(SOURCE.rglob("*.html"))
    texts = [(path, text) for path in files for text in re.findall(r"translate (\".*?\"|'.*?')", path.read_text())]

    assert len(texts) > 100
    assert [each for path, text in texts for each in found(text, words, path.name)] == []


def test_the_catalogue_uses_plain_words_in_both_languages():
    entries = catalogue()

    assert len(entries) > 900
    assert [each for english, _ in entries for each in found(english, pattern(OF_MESSAGES), "msgid")] == []
    assert [each for _, spanish in entries for each in found(spanish, pattern(OF_SPANISH), "msgstr")] == []


def test_a_spanish_text_shows_no_key_that_the_english_one_has_not():
    key = re.compile(r"(?<!%\()\b[a-z]+_[a-z_]+\b(?!\)[sd])")

    assert [spanish for english, spanish in catalogue() if set(key.findall(spanish)) - set(key.findall(english))] == []


def test_docstrings_use_plain_words():
    words = pattern(DIALECT)
    complaints = [
        complaint
        for path, tree in python_files()
        for docstring in docstrings(tree)
        for complaint in found(str(docstring.value), words, f"{path.relative_to(ROOT)}:{docstring.lineno}")
    ]

    assert complaints == []


def test_comments_use_plain_words():
    words = pattern(DIALECT)
    own = [
        *SOURCE.rglob("*.py"),
        *SOURCE.rglob("static/**/*.js"),
        *SOURCE.rglob("static/**/*.css"),
        *TESTS.rglob("*.py"),
    ]
    complaints = [
        complaint
        for path in sorted(own)
        for line, text in comments(path)
        for complaint in found(text, words, f"{path.relative_to(ROOT)}:{line}")
    ]

    assert len({path.suffix for path in own}) == 3
    assert complaints == []


def test_names_and_docstrings_of_tests_use_plain_words():
    words = pattern(DIALECT)
    complaints = []
    for path in sorted(TESTS.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [
            node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        texts = [(node.lineno, node.name.replace("_", " ")) for node in named]
        texts += [(each.lineno, str(each.value)) for each in docstrings(tree)]
        where = path.relative_to(ROOT)
        complaints += [each for line, text in texts for each in found(text, words, f"{where}:{line}")]

    assert complaints == []


def test_docs_use_plain_words():
    words = pattern(DIALECT)
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *SOURCE.rglob("*.md")} - {ROOT / "docs" / "wording.md"}
    pages = sorted(pages)
    complaints = [
        complaint
        for path in pages
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for complaint in found(line, words, f"{path.relative_to(ROOT)}:{number}")
    ]

    assert len(pages) > 10
    assert complaints == []
