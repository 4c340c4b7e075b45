"""Old notebooks are run and upgraded as old scripts are."""

import json

import pytest

from tests.processes import start

CELLS = [
    "%matplotlib inline\n!pip install ray==0.8.5\nimport gym",
    "%%writefile written_beside.py\nimport gym\nENV = gym.Env\n",
    "%%bash\nls\nexit 1",
    "",
    'import written_beside\ntext = """\n%no magic\n"""\nfor _ in range(2):\n    pass',
    "if 1:\n    %time found = written_beside.ENV\nfiles = !ls\ngym.make?\nfound is gym.Env",
    "None\n(text, files, __name__)",
]


def notebook(cells, as_lines=True, **of_version):
    """A notebook of nbformat 4, as Jupyter writes it."""
    made = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": text.splitlines(True) if as_lines else text,
            "outputs": [],
        }
        for text in cells
    ]
    made.insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# An é\n"]})
    content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4, **of_version}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def code(path):
    cells = json.loads(path.read_text())["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


@pytest.mark.parametrize("as_lines", [True, False])
def test_cells_are_run_and_what_ipython_alone_reads_is_named(tmp_path, as_lines):
    (tmp_path / "old.ipynb").write_text(notebook(CELLS, as_lines))
    done = start(tmp_path, "run", "old.ipynb")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n('\\n%no magic\\n', None, '__main__')\n"
    assert [line.split(": ", 1)[1] for line in done.stderr.splitlines()] == [
        "left out: %matplotlib inline",
        "left out: !pip install ray==0.8.5",
        "left out: %%bash",
        "left out: !ls",
        "left out: gym.make?",
    ]


def test_an_error_names_the_cell_and_shows_the_line(tmp_path):
    (tmp_path / "old.ipynb").write_text(notebook(["x = 1", "# so\nx.gone"]))
    done = start(tmp_path, "run", "old.ipynb")
    assert done.returncode == 1
    assert 'old.ipynb, cell 2", line 2' in done.stderr
    assert "x.gone" in done.stderr


@pytest.mark.parametrize("as_lines", [True, False])
def test_an_upgrade_changes_old_code_alone(tmp_path, run, as_lines):
    path = tmp_path / "old.ipynb"
    path.write_text(notebook(CELLS, as_lines))
    assert run("upgrade", path)[0] == 0
    expected = [CELLS[0].replace("import gym", "from rllib_compat import gym"), *CELLS[1:]]
    assert code(path) == expected
    assert path.read_text() == notebook(expected, as_lines)


def test_cells_use_what_earlier_ones_import(tmp_path, run):
    path = tmp_path / "old.ipynb"
    cells = [
        "import ray.rllib.agents.ppo as ppo",
        "config = {'num_workers': 0}\nagent = ppo.PPOTrainer(config, env='CartPole-v0')",
    ]
    path.write_text(notebook(cells))
    status, out, _ = run("upgrade", "--to", "native", tmp_path)
    assert status == 1
    assert "cell 2: the config" in " ".join(out.split())
    imports, config = code(path)
    assert imports == "from ray.rllib.algorithms import ppo"
    assert "# TODO(rllib-compat: trainers)" in config


def test_notebooks_of_nbformat_3(tmp_path, run):
    path = tmp_path / "old.ipynb"
    cell = {"cell_type": "code", "input": ["import gym\n", "1 + 1"], "outputs": []}
    path.write_text(json.dumps({"worksheets": [{"cells": [cell]}], "nbformat": 3}))
    assert start(tmp_path, "run", "old.ipynb").stdout == "2\n"
    assert run("upgrade", path)[0] == 0
    (sheet,) = json.loads(path.read_text())["worksheets"]
    assert sheet["cells"][0]["input"] == ["from rllib_compat import gym\n", "1 + 1"]


@pytest.mark.parametrize("text", ["[]", '{"cells": [1]}', '{"cells": []}', "{", "null"])
def test_what_is_no_notebook_says_so(tmp_path, run, text):
    path = tmp_path / "old.ipynb"
    path.write_text(text)
    status, _, err = run("upgrade", path)
    assert (status, "old.ipynb" in err) == (2, True)
