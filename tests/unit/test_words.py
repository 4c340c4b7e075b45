"""The guide is plain technical English: words that `migration_guide/style.md` replaces stay out."""

import re

import pytest

from tests import docs

#: Generated pages, whose words are those of rules and tables, and the page with the words itself.
LEFT_OUT = ("rules/", "style.md", "architecture.md", "old_examples.md", "legacy_objects.md")
WORDS = re.compile(
    r"no array shows|\bis told\b|\banew\b|\baloud\b|without a word|\bin silence\b|of one's own"
    r"|\bdies? of\b|\bkept whole\b"
)
GUIDE = [
    page
    for page in docs.documents()
    if page.parent.name in ("migration_guide", "start") or page.parent == docs.ROOT
]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_a_page_has_none_of_the_words_that_its_readers_stumble_on(page):
    if any(place in str(page.relative_to(docs.ROOT)) for place in LEFT_OUT):
        pytest.skip("its words are not the guide's own")
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    places = [text[max(word.start() - 40, 0) : word.end() + 20] for word in WORDS.finditer(text)]
    assert places == []
