"""Curves of trials of any Ray."""

import json

import numpy as np
import pytest

from rllib_compat.errors import CheckpointError, CorruptCheckpointError, TargetExistsError
from rllib_compat.neutral import install_command
from rllib_compat.trials import draw_curves, find_trials, read_trial
from tests.legacy.cases import MUSEUM

TUNED = MUSEUM / "1.13.0/ppo-torch-tunerun"
RESULTS = sorted(MUSEUM.glob("*/*/logdir/result.json"))


def row(iteration, **more):
    return {"training_iteration": iteration, "timesteps_total": iteration * 100, **more}


def write(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "result.json"


@pytest.mark.parametrize("file", RESULTS, ids=lambda f: "-".join(f.parts[-4:-2]))
def test_returns_of_every_ray_are_found(file):
    told = [json.loads(line) for line in file.open()]
    places = [(r, r.get("env_runners", {}), r.get("sampler_results", {})) for r in told]
    keys = ("episode_reward_mean", "episode_return_mean")
    expected = [
        next(
            (
                p[key]
                for p in place
                for key in keys
                if isinstance(p.get(key), float) and p[key] == p[key]
            ),
            None,
        )
        for place in places
    ]
    points = read_trial(file).curves.get("episode return", [])
    assert [p.mean for p in points] == [value for value in expected if value is not None]
    assert all(point.x > 0 for point in points)


def test_results_of_every_ray_tell_some_return():
    found = {file.parts[-4] for file in RESULTS if "episode return" in read_trial(file).curves}
    assert found == {file.parts[-4] for file in RESULTS}


def test_json_and_csv_say_the_same():
    (file,) = find_trials(TUNED)
    one, two = read_trial(file), read_trial(file.with_name("progress.csv"))
    assert set(one.curves) == set(two.curves) >= {"episode return", "episode length"}
    for name, points in one.curves.items():
        np.testing.assert_allclose(np.array(points), np.array(two.curves[name]))


def test_a_checkpoint_a_trial_and_a_folder_of_trials_mean_their_results():
    (file,) = find_trials(TUNED)
    checkpoint = next(file.parent.glob("checkpoint_000002/*"))
    assert find_trials(checkpoint) == find_trials(file.parent) == find_trials(file) == [file]


def test_where_there_are_no_results_the_error_says_where_it_looked(tmp_path):
    (tmp_path / "a/b/c/d").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="below it or above it"):
        find_trials(tmp_path / "a/b/c/d")


def test_recorded_data_is_found_with_its_bounds_old_and_new(tmp_path):
    data = {"speed_avg_mean": 2.0, "speed_avg_min": 1.0, "speed_avg_max": 3.0, "p/n_mean": 4.0}
    file = write(
        tmp_path,
        [
            row(1, custom_metrics=data),
            row(2, env_runners={"custom_metrics": data}, evaluation={"custom_metrics": data}),
        ],
    )
    curves = read_trial(file).curves
    assert [tuple(p) for p in curves["speed_avg"]] == [(100, 2, 1, 3), (200, 2, 1, 3)]
    assert [p.mean for p in curves["p/n"]] == [4, 4]
    assert [p.x for p in curves["evaluation/speed_avg"]] == [200]


def test_what_a_trial_was_set_back_from_does_not_count(tmp_path):
    rows = [row(i, episode_reward_mean=r) for i, r in ((1, 1), (2, 2), (3, 3), (2, 20), (3, 30))]
    points = read_trial(write(tmp_path, rows)).curves["episode return"]
    assert [p.mean for p in points] == [1, 20, 30]


def test_a_last_line_that_is_cut_off_is_told_and_any_other_is_an_error(tmp_path):
    file = write(tmp_path, [row(1, episode_reward_mean=1.0)])
    whole = file.read_text()
    file.write_text(whole + whole[:20])
    assert "cut off" in read_trial(file).notes[0]
    file.write_text(whole[:20] + "\n" + whole)
    with pytest.raises(CorruptCheckpointError, match=r"result\.json:1"):
        read_trial(file)


def test_any_number_can_be_drawn_and_one_that_is_not_there_is_told(tmp_path):
    file = write(tmp_path, [row(1, info={"learner": {"p": {"kl": 0.5}}}, time_total_s=7200)])
    trial = read_trial(file, axis="hours", more=("info/learner/p/kl", "info/nothing"))
    assert [tuple(p)[:2] for p in trial.curves["info/learner/p/kl"]] == [(2.0, 0.5)]
    assert "info/nothing" in trial.notes[0]


def test_the_numbers_are_printed_without_matplotlib(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    code, out, _ = run("plot", TUNED, "--json")
    assert code == 0
    (shown,) = json.loads(out)
    assert len(shown["curves"]["episode return"]) == 2


def test_without_matplotlib_the_command_to_install_it_is_named(run, monkeypatch, tmp_path):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    code, _, err = run("plot", TUNED, "--out", tmp_path / "a.png")
    assert (code, install_command("plot") in err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_old_and_new_are_in_one_picture(tmp_path, run):
    pytest.importorskip("matplotlib")
    new = write(
        tmp_path / "new $x_{", [row(3, episode_reward_mean=9.0), row(4, episode_reward_mean=9)]
    )
    out = tmp_path / "both.svg"
    assert run("plot", TUNED, new.parent, "--out", out)[0] == 0
    assert out.read_text().count('id="axes_') == 2
    trials = [read_trial(find_trials(path)[0]) for path in (TUNED, new)]
    with pytest.raises(TargetExistsError):
        draw_curves(trials, out, axis="steps")
    before = out.read_bytes()
    with pytest.raises(Exception, match="cannot write"):
        draw_curves(trials, tmp_path / "a.doc", axis="steps")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["both.svg", "new $x_{"]
    assert out.read_bytes() == before


def test_seeds_are_one_curve_with_their_mean_and_a_band(tmp_path, run):
    for seed, gain in enumerate((1.0, 3.0)):
        rows = [row(i, episode_reward_mean=gain * i) for i in range(1, 5 + seed)]
        write(tmp_path / f"seeds/{seed}", rows)
    plot = ("plot", tmp_path / "seeds", "--json", "--x", "iterations", "--label", "both")
    (shown,) = json.loads(run(*plot)[1])
    assert shown["label"] == "both"
    points = shown["curves"]["episode return"]
    assert [(p["x"], p["low"], p["mean"], p["high"]) for p in points] == [
        (i, i, 2 * i, 3 * i) for i in range(1, 5)
    ]


def test_a_smoothed_curve_has_the_mean_of_the_points_before(tmp_path, run):
    write(tmp_path / "one", [row(i, episode_reward_mean=v) for i, v in enumerate((0, 6, 3), 1)])
    (shown,) = json.loads(run("plot", tmp_path / "one", "--json", "--smooth", 2)[1])
    assert [p["mean"] for p in shown["curves"]["episode return"]] == [0, 3, 4.5]
