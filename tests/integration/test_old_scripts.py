"""Old scripts, unchanged, through `rllib-compat run`."""

import json
import zipfile
from pathlib import Path

import pytest

from rllib_compat.artifacts import verify
from tests.processes import ROOT, start, start_python

pytestmark = [pytest.mark.ray, pytest.mark.newest]


def test_what_an_environment_says_is_in_the_files_of_the_trial(tmp_path):
    own, results = tmp_path / "own", tmp_path / "results"
    own.mkdir()
    done = start(tmp_path, "run", ROOT / "tests/scripts/episode_data.py", results, own)
    assert done.returncode == 0, done.stderr
    said = sorted(line.strip() for file in own.iterdir() for line in file.open())
    files = sorted(results.rglob("diaries/*.json"))
    assert [file.name for file in files] == ["1-50.json", "2-100.json", "3-150.json"]
    # 50 steps of 10 each, and two episodes of evaluation.
    assert [len(json.loads(file.read_text())) for file in files] == [7, 7, 7]
    assert sorted(json.dumps(e) for file in files for e in json.loads(file.read_text())) == said
    (written,) = results.rglob("result.json")
    for line in written.open():
        told = json.loads(line)
        assert told["custom_metrics"]["speed_mean"] == pytest.approx(1.1)
        assert told["custom_metrics"]["way_max"] == pytest.approx(11)
        assert told["custom_metrics"]["articles_min"] == 10
        assert set(told["hist_stats"]["articles"]) == {10}
        assert len(told["hist_stats"]["speeds"]) == 10 * len(told["hist_stats"]["articles"])


def example(tmp_path, name):
    """What an example of the guide prints, made small."""
    script = ROOT / "migration_guide/examples" / name
    done = start_python(tmp_path, script, 2, HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.nightly
def test_the_guides_example_of_recording_runs(tmp_path):
    *_, first, _, _, last = example(tmp_path, "record_episode_data.py")
    assert first.startswith("2 ")
    assert last.startswith("rllib-compat plot /")
    trial = Path(last.split()[-1])
    assert len(list(trial.glob("episode_data/*.jsonl"))) == 3


@pytest.mark.nightly
def test_the_guides_example_of_simulators_runs(tmp_path):
    *_, one, two, last = example(tmp_path, "simulator_folders.py")
    for number, line in enumerate((one, two), 1):
        place, files, _ = line.split()
        assert place.endswith(f"/runner-{number}/env-0")
        assert int(files) >= 10
    assert verify(last.split()[2]) == []


def test_the_guides_example_of_a_league_runs(tmp_path):
    told = [line for line in example(tmp_path, "league_memory.py") if " against self-0 " in line]
    assert [line.split(" {")[0] for line in told] == ["1 against self-0", "2 against self-0 self-1"]
    assert all("'main'" in line for line in told)


OLD_CORRIDOR = """
import gym

class SimpleCorridor(gym.Env):
    def reset(self):
        return "another corridor"
"""
WITH_WORKERS = """
import ray
from ray.rllib.examples.env.simple_corridor import SimpleCorridor

ray.init(num_cpus=1)
print(ray.get(ray.remote(lambda cls: cls().reset()).remote(SimpleCorridor)))
"""


@pytest.mark.ray
def test_workers_have_the_examples_of_the_old_ray_that_is_named(tmp_path):
    wheel, script = tmp_path / "ray-1.0.0.whl", tmp_path / "train.py"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ray/rllib/examples/env/__init__.py", "")
        archive.writestr("ray/rllib/examples/env/simple_corridor.py", OLD_CORRIDOR)
    script.write_text(WITH_WORKERS)
    done = start(tmp_path, "run", "--old-ray", wheel.name, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "another corridor\n"


def test_a_scripts_error_is_told_as_python_does(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\nfrom ray.rllib.optimizers import AsyncReplayOptimizer as Replay\nReplay()\n"
    )
    done = start(tmp_path, "run", script)
    assert done.returncode == 1
    assert 'broken.py", line 3, in <module>' in done.stderr
    assert "cli/run.py" not in done.stderr
    assert "training_step" in done.stderr


def test_a_script_gets_its_arguments_its_exit_code_and_modules_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text("import gym\nENV = gym.Env\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import sys, beside, gym\n"
        "assert __name__ == '__main__' and beside.ENV is gym.Env\n"
        "print(sys.argv[1:])\nsys.exit(7)\n"
    )
    done = start(tmp_path, "run", script, "--stop-iters", 1)
    assert (done.returncode, done.stdout) == (7, "['--stop-iters', '1']\n")
