"""Old scripts, unchanged, through `rllib-compat run`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def run(tmp_path, script, *args):
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "rllib_compat", "run", str(script), *args]
    return subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )


@pytest.mark.ray
def test_what_an_environment_says_is_in_the_files_of_the_trial(tmp_path):
    done = run(tmp_path, SCRIPTS / "episode_data.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.rglob("episode_data/data-*.json"))
    assert len(files) == 3
    for file in files:
        episodes = json.loads(file.read_text())
        assert len(episodes) == 5  # 50 steps of 10 each
        assert all(episode == {"place": list(range(1, 11))} for episode in episodes)


def test_a_scripts_error_is_told_as_python_does(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\nfrom ray.rllib.optimizers import PolicyOptimizer\nPolicyOptimizer()\n"
    )
    done = run(tmp_path, script)
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
    done = run(tmp_path, script, "--stop-iters", "1")
    assert (done.returncode, done.stdout) == (7, "['--stop-iters', '1']\n")
