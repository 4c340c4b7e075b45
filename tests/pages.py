"""Looks at the guide's built pages in a browser, at the widths of a phone and of two screens.

`python -m tests.pages HTML_FOLDER` fails where a page, a table or a block of code is wider than its
place, so that a reader would have to scroll sideways, where the search for a config key does not
find its rule first, or where the switch between versions fails. It needs Chromium or Chrome;
without one it says so and checks nothing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import Page, sync_playwright

WIDTHS = (390, 1280, 1920)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Keys whose rules a search should find first, and the pages that these are on.
SEARCHES = {"sgd_minibatch_size": "rules/ppo", "sample_batch_size": "rules/rollouts"}

_TOO_WIDE = """() =>
  [document.documentElement, ...document.querySelectorAll("article :is(pre, .table-wrapper)")]
    .filter((part) => part.scrollWidth > part.clientWidth + 1)
    .map((part) => `${part.tagName.toLowerCase()}: ${part.innerText.trim().slice(0, 60)}`)
"""


def too_wide(page: Page, folder: Path) -> Iterator[str]:
    """What is wider than its place, with where it is."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for file in sorted(folder.rglob("*.html")):
            page.goto(file.as_uri(), wait_until="domcontentloaded")
            for part in page.evaluate(_TOO_WIDE):
                yield f"{file.relative_to(folder)} at {width} pixels: {part!r} is too wide"


def not_found_first(page: Page, folder: Path) -> Iterator[str]:
    """Keys that the search does not lead to."""
    for key, rules in SEARCHES.items():
        page.goto(f"{(folder / 'search.html').as_uri()}?q={key}")
        first = page.locator("#search-results li a").first.get_attribute("href") or ""
        if not first.startswith(rules):
            yield f"a search for {key!r} finds {first!r} first, not {rules!r}"


def find_browser() -> str | None:
    """The path of a browser of this machine."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def no_versions(page: Page, folder: Path) -> Iterator[str]:
    """What is wrong with the switch between versions of a guide that is published."""
    serve = partial(SimpleHTTPRequestHandler, directory=folder.parent)
    SimpleHTTPRequestHandler.log_message = lambda *_: None
    versions = [folder.name, "v0.1.0"]
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page.route("**/versions.json", lambda route: route.fulfill(json=versions))
        page.goto(f"http://127.0.0.1:{server.server_port}/{folder.name}/start/checkpoint.html")
        choice = page.locator("#versions")
        found = choice.locator("option").all_inner_texts() if choice.input_value() else []
        if found != versions or choice.input_value() != folder.name:
            yield f"the versions are {found}, not {versions}, or another one is chosen"
        with page.expect_navigation():
            choice.select_option("v0.1.0")
        if not page.url.endswith("/v0.1.0/index.html"):
            yield f"the version v0.1.0 is at {page.url}"
        server.shutdown()


def main(folder: Path) -> int:
    """The exit code; what is wrong goes to stdout."""
    if (browser := find_browser()) is None:
        print(f"no browser ({', '.join(BROWSERS)}): the pages were not looked at")
        return 0
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        wrong = [*too_wide(page, folder), *not_found_first(page, folder)]
        wrong += no_versions(page, folder)
        chromium.close()
    print("\n".join(wrong) or f"{len(WIDTHS)} widths: every page fits")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
