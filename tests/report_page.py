"""Uses the page of `rllib-compat report` in a browser: wide, as on a phone, and with 10,000 rows.

`python -m tests.report_page` fails where the page is wider than the window, where a click on a
heading, a filter or a word of a search takes more than 0.4 seconds, where they show other
rows than they should, or where text of a file becomes more than text. `--screenshots FOLDER` keeps
pictures, to look at. It needs Chromium or Chrome; without one it says so and checks nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from rllib_compat.cli.report import make_page
from rllib_compat.conversion.archive_log import Outcome, Outcomes
from tests.pages import find_browser

ROWS, WIDTHS, SLOWEST = 10_000, (390, 1100, 1210, 1920), 400  # ms
HOSTILE = "</script><img src=x onerror=document.title='ran'>"
#: Uses a part three times, which sorts as once does; the fastest counts, on a busy machine.
_USE = """async ([id, value]) => {
  const element = document.querySelector(id), took = [];
  for (let time = 0; time < 3; time++) {
    const began = performance.now();
    if (value === null) element.click();
    else { element.value = value; element.dispatchEvent(new Event("input")); }
    document.body.getBoundingClientRect();
    took.push(performance.now() - began);
  }
  const names = [...document.querySelectorAll("#rows [data-name=checkpoint]")];
  const count = document.querySelector("#count").innerText;
  return [Math.min(...took), names.map((cell) => cell.textContent), count];
}"""


def outcomes(count: int) -> Outcomes:
    """What became of an archive: one in fifty was refused, for one of three reasons."""
    made, reasons = Outcomes(), ("its end is missing", "it has no action space", HOSTILE)
    for number in range(count):
        algorithm = ("PPO", "DQN", "SAC", "A2C")[number % 4]
        name = f"{algorithm}_CartPole-v0_{number // 10:05d}_lr=0.001/checkpoint_{number:06d}"
        places = f"/archive/{name}", f"/new/{name}"
        if number % 50 == 7:
            reason = reasons[number // 50 % 3]
            fix = "Give --action-space 'Discrete(3)'." if "space" in reason else ""
            made.add(Outcome(*places, "refused", reason, reason=reason, fix=fix, name=name))
            continue
        facts = {"algorithm": algorithm, "ray": f"1.{number % 14}.0", "parameters": number * 37}
        facts |= {"networks": f"fully connected {number % 9}-256-256, 2 outputs, LSTM {number % 5}"}
        facts |= {"environment": "MyCompany/WarehouseRobots-v3", "policies": 1 + number % 3}
        details = [f"assumed: default_policy.activation = tanh ({HOSTILE})"] * 4
        curve = [(1000.0 * x, (x * (number % 11)) ** 0.5) for x in range(60)]
        row = Outcome(
            *places,
            "converted",
            "a Checkpointable tree",
            facts=facts,
            warnings=number % 5 // 4,
            largest_difference=1e-9 * (number % 100),
            name=name,
            details=details,
            curve=curve,
        )
        made.add(row)
    return made


def look(page: Page) -> Iterator[str]:
    """Uses a page of `ROWS` rows; yields what is wrong with it."""

    def use(what: str, value: str | None = None) -> tuple[list[str], str]:
        took, names, count = page.evaluate(_USE, [what, value])
        print(f"{what} {value or ''}: {took:.0f} ms, {count}")
        slow.extend([f"{what} takes {took:.0f} ms"] if took > SLOWEST else [])
        return names, count

    slow = list[str]()
    names, _ = use("th[data-name=parameters] button")
    if not names[0].endswith("checkpoint_000000"):
        yield f"the row with the fewest parameters is {names[0]}"
    names, _ = use("th[data-name=parameters] button")
    if not names[0].endswith(f"checkpoint_{ROWS - 1:06d}"):
        yield f"the row with the most parameters is {names[0]}"
    for heading in ("name", "difference", "ray", "environment"):
        use(f"th[data-name={heading}] button")
    for what, value, expected in (
        ("#status", "refused", ROWS // 50),
        ("#status", "", ROWS),
        ("#algorithm", "SAC", ROWS // 4),
        ("#algorithm", "", ROWS),
        ("#search", "00099", 0),
        ("#search", "checkpoint_001234", 1),
        ("#search", "", ROWS),
        ("#sort", "parameters 1", ROWS),
    ):
        _, count = use(what, value)
        if expected and not count.startswith(f"{expected:,} of {ROWS:,}"):
            yield f"{what} {value}: {count}, not {expected:,}"
    yield from slow


def main() -> int:
    """The exit code; what is wrong goes to stdout."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--screenshots", type=Path)
    folder = parser.parse_args().screenshots
    if (browser := find_browser()) is None:
        print("no browser: the page was not used")
        return 0
    wrong = list[str]()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        for rows in (30, ROWS):
            file = Path(place, f"{rows}.html")
            file.write_bytes(b"".join(make_page(outcomes(rows), "/new")))
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(file.as_uri())
                page.locator("tr.row").nth(1).click()
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    wrong.append(f"{rows} rows at {width} pixels: it is too wide")
                if folder:
                    page.screenshot(path=folder / f"{rows}_{width}.png", full_page=rows < ROWS)
        wrong += look(page)
        shown: dict[str, Any] = json.loads(page.locator("#data").inner_text() or "{}") or {}
        if page.title() != "Converted checkpoints" or page.locator("img").count() or not shown:
            wrong.append("text of a file is more than text")
        wrong += [f"it asks for {url}" for url in asked if not url.startswith("file:")]
        page.emulate_media(media="print")
        if page.locator(".controls").is_visible():
            wrong.append("printed, it has controls")
        if folder:
            page.goto(Path(place, "30.html").as_uri())
            page.pdf(path=folder / "30.pdf", format="A4")
        chromium.close()
    print("\n".join(wrong) or f"{ROWS:,} rows: the page works")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
