"""The documents say what is so: commands, code, links and recorded outputs."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from rllib_compat import cli
from tests import docs

DOCUMENTS = docs.documents()
BLOCKS = [block for document in DOCUMENTS for block in docs.blocks(document)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
CONSOLE = [block for block in BLOCKS if block.language in ("console", "bash", "sh")]
CHECKED = [block for block in BLOCKS if "checked" in block.marks]
VERBS = sorted(cli._VERBS)

# What is written in running text, as `rllib-compat convert OLD NEW` or `--to msgpack`.
_INLINE = re.compile(r"`((?:rllib-compat )?(?:--|[a-z]+ )[^`\n]*)`")
# Options of other programs that the documents speak of.
_FOREIGN = {"--group"}


@cache
def command(verb: str) -> click.Command:
    return importlib.import_module(f"rllib_compat.cli.{verb}").command


@cache
def options(verb: str) -> frozenset[str]:
    given = [p for p in command(verb).params if isinstance(p, click.Option)]
    names = {name for p in given for name in (*p.opts, *p.secondary_opts)}
    return frozenset({*names, "-h", "--help"})


def wrong(words: list[str]) -> list[str]:
    """What a command of ours has that its help has not."""
    verb, *rest = words[1:]
    if verb.startswith("-"):
        return []
    if verb not in VERBS:
        return [verb]
    used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    return sorted(used - options(verb))


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_commands_exist(block: docs.Block) -> None:
    for words in block.commands:
        if words[:1] == ["rllib-compat"] and len(words) > 1:
            assert wrong(words) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(docs.ROOT)))
def test_options_in_the_text_exist(document: Path) -> None:
    every = {option for verb in VERBS for option in options(verb)}
    for match in _INLINE.finditer(document.read_text("utf-8")):
        words = match[1].split()
        if words[0] == "rllib-compat" and len(words) > 1 and words[1] in VERBS:
            assert wrong([w for w in words if not w.startswith("[")]) == [], match[0]
        elif words[0].startswith("--"):
            assert words[0].partition("=")[0] in every | _FOREIGN, match[0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb: str, run: Callable[..., Any]) -> None:
    code, told, _ = run(verb, "--help")
    assert code == 0
    examples = [line.split() for line in told.splitlines() if line.startswith("    rllib-compat ")]
    assert examples
    assert [wrong(words) for words in examples] == [[]] * len(examples)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_guide(verb: str) -> None:
    page = docs.ROOT / "migration_guide/command_line.md"
    assert f"rllib-compat {verb}" in page.read_text("utf-8")


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_compiles(block: docs.Block) -> None:
    compile(block.body, str(block), "exec")


@pytest.mark.parametrize("block", [b for b in PYTHON if "runnable" in b.marks], ids=str)
def test_python_that_needs_no_ray_runs(
    block: docs.Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(docs.ROOT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").symlink_to(docs.ROOT / "rllib_compat/demo_data")
    exec(compile(block.body, str(block), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", CHECKED, ids=str)
def test_recorded_output_is_what_is_printed(block: docs.Block) -> None:
    assert block.body == docs.checked(block), "`python -m tests.docs` writes it anew"


def test_the_picture_of_the_readme_shows_what_the_guide_does() -> None:
    """By its text only: another rich draws another picture."""
    assert "](migration_guide/_static/terminal.svg)" in (docs.ROOT / "README.md").read_text("utf-8")
    assert _shown(docs.PICTURE.read_text("utf-8")) == _shown(docs.picture())


def _shown(svg: str) -> list[str]:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [html.unescape(text).replace("\xa0", " ").rstrip() for text in texts]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(docs.ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in docs.links(document):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        page = (document.parent / path) if path else document
        assert page.exists(), f"{target} in {document.name}"
        if heading and page.suffix == ".md":
            assert heading in anchors(page), f"{target} in {document.name}"


def anchors(page: Path) -> set[str]:
    """The names that headings and labels of a page can be reached by."""
    text = page.read_text("utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def test_nothing_of_one_machine_is_told() -> None:
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        assert not re.search(r"/(work|root|home/\w+|opt)/", text), document


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = json.loads((docs.ROOT / "migration_guide/start/notebook.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], cell["id"], "exec"), names)
    out = capsys.readouterr().out
    assert "PPO 0.8.5 CartPole-v0 400" in out
    assert (tmp_path / "kept").is_dir()
