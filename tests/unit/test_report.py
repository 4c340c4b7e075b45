"""The page about an archive: what it holds, and that text from files stays text."""

import json
import re
import shutil

import pytest

from tests.legacy.cases import find

SMALL = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
FILES = SMALL.checkpoint if SMALL.checkpoint.is_dir() else SMALL.checkpoint.parent
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def converted(tmp_path, run):
    """The folder of a recursive run: one checkpoint converted, one damaged."""
    old = tmp_path / "results"
    shutil.copytree(FILES, old / "PPO_a" / "checkpoint_2")
    for params in FILES.parent.glob("params.*"):
        shutil.copy(params, old / "PPO_a")
    results = [
        {"training_iteration": i, "timesteps_total": 10 * i, "episode_reward_mean": float(i)}
        for i in range(1, 200)
    ]
    (old / "PPO_a/result.json").write_text("\n".join(map(json.dumps, results)))
    (old / "PPO_b/checkpoint_3").mkdir(parents=True)
    (old / "PPO_b/checkpoint_3/checkpoint-3").write_bytes(b"\x80\x02damaged")
    code, out, _ = run("convert", "--recursive", old, tmp_path / "new", "--to", "msgpack")
    assert (code, "report.html" in out) == (1, True)
    return tmp_path / "new"


def read(page):
    (text,) = re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    return json.loads(text)


def test_a_recursive_run_writes_a_page_with_each_checkpoint_and_reason(converted):
    data = read(converted / "report.html")
    good, bad = sorted(data["rows"], key=lambda row: row["name"])
    assert (good["status"], good["algorithm"], good["ray"]) == ("converted", "PPO", "0.8.5")
    assert good["environment"] == "CartPole-v0"
    assert good["last"] == 199
    assert len(good["curve"]) <= 70
    assert good["parameters"] > 1000
    assert (bad["status"], bad["curve"]) == ("refused", [])
    assert data["totals"] == [["checkpoints", 2], ["converted", 1], ["refused", 1]]
    assert [reason["count"] for reason in data["reasons"]] == [1]


def test_a_page_of_very_many_has_those_that_need_attention(converted, monkeypatch, run):
    log = converted / "conversions.jsonl"
    rows = [json.loads(line) | {"warnings": 0} for line in log.read_text().splitlines()]
    log.write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr("rllib_compat.cli.report._MOST_ROWS", 0)
    run("report", converted, "--out", converted / "short.html")
    data = read(converted / "short.html")
    assert [row["status"] for row in data["rows"]] == ["refused"]
    assert data["totals"][0] == ["checkpoints", 2]
    assert "Of 1 that need no attention, 0 have a row" in data["about"]


def test_text_of_files_never_ends_the_script(converted, run):
    log = converted / "conversions.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows[0] |= {
        "name": HOSTILE,
        "message": HOSTILE,
        "details": [HOSTILE],
        "facts": {"ray": HOSTILE},
    }
    log.write_text("\n".join(map(json.dumps, rows)) + '\n{"name": half')
    page = converted / "again.html"
    assert run("report", converted, "--out", page)[0] == 0
    text = page.read_text("utf-8")
    assert HOSTILE not in text
    assert text.count("</script>") == 2
    assert HOSTILE in {row["name"] for row in read(page)["rows"]}


def test_a_folder_without_a_log_is_refused(tmp_path, run):
    code, _, err = run("report", tmp_path)
    assert (code, "convert --recursive" in err) == (2, True)


def test_a_dry_run_writes_nothing(tmp_path, run):
    shutil.copytree(FILES, tmp_path / "old/checkpoint_2")
    places = (tmp_path / "old", tmp_path / "new")
    code, out, _ = run("convert", "--recursive", "--dry-run", *places, "--to", "msgpack")
    assert (code, "1 would be converted" in out) == (0, True)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
