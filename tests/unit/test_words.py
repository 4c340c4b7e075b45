"""Pages and messages are plain technical English: the words that `style.md` replaces stay out."""

import ast
import importlib
import inspect
import re

import pytest

from tests import docs

#: Generated pages, whose words are those of rules and tables, and the page with the words itself.
LEFT_OUT = ("rules/", "style.md", "architecture.md", "old_examples.md", "legacy_objects.md")
_PHRASES = (
    r"no array shows|\bis told\b|\banew\b|\baloud\b|without a word|\bin silence\b|of one's own"
    r"|\bdies? of\b|\bkept whole\b"
)
WORDS = re.compile(_PHRASES)
#: In messages also words that pages have in other senses.
IN_MESSAGES = re.compile(
    rf"{_PHRASES}|\b(to|was|were|been) told\b|\btells?\b|\bonce more\b|\bgo(es)? on\b|\bmend\b"
    r"|\bstands? (in|on|under|beside|for|between)\b|\bnobody\b|\bno Ray ever\b|\bof today\b(?!')"
)
#: In code, an identifier `told` as well.
IN_CODE = re.compile(rf"{_PHRASES}|\btold\b|\bnobody\b|\btells\b|\bgoes on\b|\bhands it on\b")
#: What people import.
PUBLIC = [
    "rllib_compat",
    *(f"rllib_compat.{name}" for name in ("adapters", "artifacts", "episode_data")),
    *(f"rllib_compat.{name}" for name in ("gym", "league", "legacy", "tune")),
]
GUIDE = [
    page
    for page in docs.documents()
    if page.parent.name in ("migration_guide", "start") or page.parent == docs.ROOT
]
_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _messages(source):
    """The texts of a module that a user may read: those of several words, and help texts.

    Docstrings of `command` are help texts, others are not counted.
    """
    tree = ast.parse(source)
    docstrings = {
        id(scope.body[0].value)
        for scope in ast.walk(tree)
        if isinstance(scope, _SCOPES)
        and getattr(scope, "name", "") != "command"
        and isinstance(scope.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text and id(node) not in docstrings:
            yield node.lineno, text


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_a_page_has_none_of_the_words_that_its_readers_stumble_on(page):
    if any(place in str(page.relative_to(docs.ROOT)) for place in LEFT_OUT):
        pytest.skip("its words are not the guide's own")
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    places = [text[max(word.start() - 40, 0) : word.end() + 20] for word in WORDS.finditer(text)]
    assert places == []


def test_messages_and_help_texts_have_none_of_them_either():
    package = docs.ROOT / "rllib_compat"
    found = [
        f"{file.relative_to(package)}:{line}: {text[:80]}"
        for file in sorted(package.rglob("*.py"))
        for line, text in _messages(file.read_text("utf-8"))
        if IN_MESSAGES.search(text)
    ]
    assert found == []


def _public_docstrings():
    """Docstrings of what people import, and of its public methods."""
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            found = getattr(importlib.import_module(module), name)
            if not getattr(found, "__module__", "").startswith("rllib_compat"):
                continue
            yield f"{module}.{name}", found.__doc__
            if inspect.isclass(found):
                members = vars(found).items()
                yield from ((f"{name}.{k}", v.__doc__) for k, v in members if not k.startswith("_"))


def test_public_docstrings_have_none_of_them_either():
    pytest.importorskip("ray")  # what Ray's classes are derived from is made when it is asked for
    texts = [(name, text) for name, text in _public_docstrings() if isinstance(text, str)]
    assert len(texts) > 300
    assert [name for name, text in texts if IN_MESSAGES.search(text)] == []


def test_code_has_none_of_them_in_names_docstrings_and_comments():
    package = docs.ROOT / "rllib_compat"
    found = [
        f"{file.relative_to(package)}:{number}: {line.strip()}"
        for file in sorted(package.rglob("*.py"))
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if IN_CODE.search(line)
    ]
    assert found == []
