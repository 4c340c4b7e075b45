"""The doors of the package: what is done with a mutant's files, and which files those are."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import click

from rllib_compat.errors import CompatError
from tests.fuzz import seeds
from tests.fuzz.mutate import Files

#: What a door gets: the folder with the mutant's files, a folder to write to, and chance.
Act = Callable[[Path, Path, random.Random], None]


class Told(Exception):
    """The command line told of an error that is none of ours.

    Attributes:
        place: The last line of the package in its traceback.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text.strip().splitlines()[-2] if text.count("\n") > 1 else text)
        lines = re.findall(r'rllib_compat/([^"]+)", line (\d+)', text)
        self.place = ":".join(lines[-1]) if lines else "?"


class Refused(CompatError):
    """The command line refused, with exit code 2."""


@dataclass(frozen=True)
class Door:
    """A door.

    Attributes:
        act: What is done.
        seeds: What mutants are made of.
        share: How often it is taken, in some three hundred.
        part: What of a file is changed, where it looks at one part alone.
        in_place: Whether it writes into the mutant's own folder.
        files_change: Whether files are changed at all.
        forked: Whether it changes the process, and gets one of its own.
        rays_pickles: Whether Ray unpickles files that were written just now.
    """

    act: Act
    seeds: Callable[[], tuple[Files, ...]]
    share: int
    part: str = ""
    in_place: bool = False
    files_change: bool = True
    forked: bool = False
    rays_pickles: bool = False


def command(*arguments: object) -> str:
    """Runs a verb as the command line does, and returns what it prints.

    Raises:
        Told: It tells of an error that is none of ours.
        Refused: It ends with 2.
    """
    from rllib_compat.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else 2
    is_scripts = arguments[0] == "run"  # what a script raises is told as Python tells it
    if "failed: unexpected" in err.getvalue() or (
        "Traceback (most" in err.getvalue() and not is_scripts
    ):
        raise Told(err.getvalue())
    # Text of a stranger's file must reach any terminal; stderr escapes what it can't encode.
    out.getvalue().encode()
    if code not in (0, 1):
        raise Refused(err.getvalue()[-300:])
    return out.getvalue()


def _file(root: Path) -> Path:
    """The one file that a mutant is; or what was made of it."""
    return next((p for p in sorted(root.rglob("*")) if not p.is_dir()), root / "none")


# --- checkpoints


def _inspect(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat import inspect

    del out
    found = inspect(seeds.checkpoint_in(root))
    json.dumps(found.to_dict(), default=str)
    if rng.random() < 0.1:
        command("inspect", "--arrays", "-v", *(["--json"] * rng.randrange(2)), root)


def _convert(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat import convert

    del rng
    convert(seeds.checkpoint_in(root), out / "new", to="msgpack", inputs=2)


def _names(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat.formats import list_globals

    del out, rng
    list_globals(seeds.checkpoint_in(root))


def _verify(root: Path, out: Path, rng: random.Random) -> None:
    """As the new one of a pair; a tree as the new one is read by the same reader as an old one."""
    from rllib_compat import verify

    del out, rng
    path = seeds.checkpoint_in(root)
    if not (path / "learner_group").exists():
        verify(path, path, inputs=2)


def _optimizers(root: Path, out: Path, rng: random.Random) -> None:
    """As far as the states of optimizers are handed to Ray."""
    import torch  # noqa: F401 - while warming up: no mutant is charged with it

    from rllib_compat import Given
    from rllib_compat.conversion.complete import complete
    from rllib_compat.conversion.identify import identify_networks
    from rllib_compat.formats import read_checkpoint
    from rllib_compat.networks import plan_optimizers
    from rllib_compat.networks.optimizers import torch_slots

    del out, rng
    read = read_checkpoint(seeds.checkpoint_in(root))
    checkpoint, networks = identify_networks(complete(read, Given()), Given())
    plans, findings = plan_optimizers(checkpoint.policies, networks)
    for policy_id, states in plans.items():
        for state in states.values():
            torch_slots(state, networks[policy_id])
    for finding in findings:
        str(finding)


def _load_policy(root: Path, out: Path, rng: random.Random) -> None:
    import numpy as np

    from rllib_compat import load_policy

    del out
    path = seeds.checkpoint_in(root) if root.is_dir() else root
    policy = load_policy(path, explore=rng.random() < 0.5)
    space = policy.observation_space
    shape = getattr(space, "shape", None)
    if isinstance(shape, tuple) and int(np.prod(shape)) < 10_000:
        policy.compute_single_action(np.zeros(shape, np.float32))


def _policy_file(root: Path, out: Path, rng: random.Random) -> None:
    parts = [root / name for name in ("header.json", "arrays")]
    data = [p.read_bytes() if p.is_file() and not p.is_symlink() else b"" for p in parts]
    out.mkdir()
    (out / "mutant.rlpolicy").write_bytes(seeds.pack_policy(*data))
    _load_policy(out / "mutant.rlpolicy", out, rng)


def _write_model(root: Path, out: Path, rng: random.Random) -> None:
    del rng
    out.mkdir()
    path, file = seeds.checkpoint_in(root), out / "model.py"
    command("convert", path, out / "new", "--write-model", file)
    if file.exists():
        ast.parse(file.read_bytes())


def _find(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat.conversion.convert_many import find_jobs

    find_jobs(root, out)
    if rng.random() < 0.2:
        command("inspect", root)


def _evaluate(root: Path, out: Path, rng: random.Random) -> None:
    """A stranger's checkpoint, a few steps of an environment."""
    del out
    given = rng.choice(([], ["--run", "PPO", "--env", "CartPole-v1"], ["--env", "CartPole-v1"]))
    command("evaluate", seeds.checkpoint_in(root), "--episodes", 1, "--steps", 3, *given)


# --- configs


def _config(root: Path, out: Path, rng: random.Random) -> None:
    del out
    file = _file(root)
    source = f"{file}:CONFIG" if file.suffix == ".py" else file
    more = rng.choice(([], ["--json"], ["--algorithm", "PPO"], ["--on-unknown", "pass"]))
    command("config", source, "--on-unknown", "warn", "--algorithm", "PPO", *more)


def _demo() -> Path:
    return Path(str(resources.files("rllib_compat") / "demo_data"))


def _given_config(root: Path, out: Path, rng: random.Random) -> None:
    """Config files of strangers beside a checkpoint."""
    del out
    file = _file(root)
    verb = rng.choice((["inspect", _demo(), "--config"], ["inspect", _demo(), "--weights-map"]))
    command(*verb, file)


def _evaluate_config(root: Path, out: Path, rng: random.Random) -> None:
    del out
    file, text = _file(root), None
    if rng.random() < 0.3 and file.is_file():
        text = file.read_bytes().decode("utf-8", "replace")
    told = text if text and text.lstrip().startswith("{") else str(file)
    played = ["--env", "CartPole-v1", "--run", "PPO", "--episodes", 1, "--steps", 3]
    command("evaluate", _demo(), *played, "--config", told.replace("\0", ""))


def _train(root: Path, out: Path, rng: random.Random) -> None:
    del out
    more = rng.choice(([], ["--json"], ["--legacy-ray", "0.8.5"], ["--on-unknown", "pass"]))
    command("train", "-f", _file(root), "--dry-run", *more)


# --- what was logged, recorded and stored


def _plot(root: Path, out: Path, rng: random.Random) -> None:
    import matplotlib.font_manager  # noqa: F401 - while warming up: no mutant is charged with it

    axis = ["--x", rng.choice(("steps", "iterations", "hours"))]
    more = rng.choice(([], ["--data", "info/learner/lr"], ["--data", rng.choice("/x")]))
    if rng.random() < 0.06:
        command("plot", root, *axis, *more, "--out", out / "p.png")
    else:
        command("plot", root, *axis, *more, "--json")


def _artifacts(root: Path, out: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(root.glob("checkpoint_*")) or [root])
    more = rng.choice((["--verify"], ["--json"], ["--extract", out / "files"], []))
    command("artifacts", path, *more)


def _upgrade(root: Path, out: Path, rng: random.Random) -> None:
    del out
    how = rng.choice((["--diff"], ["--check"], [], ["--json"], ["-v"]))
    command("upgrade", root, "--to", rng.choice(("compat", "native")), *how)


def _recordings(root: Path, out: Path, rng: random.Random) -> None:
    del out
    if rng.random() < 0.5:
        from rllib_compat.adapters import as_parquet

        as_parquet(str(root))
        return
    from ray.rllib.offline import IOContext

    from rllib_compat.adapters import Readers

    reader = Readers(str(root)).build()(IOContext())
    for _ in range(3):
        reader.next()


def _recorded(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat import convert

    del rng
    convert(_demo(), out / "new", to="msgpack", inputs=2, algorithm="PPO", recorded=_file(root))


def _episodes(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat.episode_data import read_episodes

    del out
    path = root if rng.random() < 0.7 else _file(root)
    for episode in read_episodes(path):
        json.dumps(episode, default=str)


class _Served:
    """An environment that takes whatever a request holds."""

    observation_space = None

    def __getattr__(self, name: str) -> Any:
        return lambda *given: repr(given)


def _serve(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat.runtime.external import PolicyServer, read_request, write_answer

    del out, rng
    server = PolicyServer.__new__(PolicyServer)  # it need not listen
    server.env = _Served()
    for file in filter(Path.is_file, root.rglob("*")):
        write_answer(server.answer(read_request(file.read_bytes())))


# --- what needs Ray's algorithms


@functools.cache
def _trainer() -> tuple[Any, tuple[Files, ...]]:
    """A trainer, and the files of its own checkpoint."""
    import tempfile

    from rllib_compat import PPOTrainer

    model = {"fcnet_hiddens": [4]}
    trainer = PPOTrainer(
        config={"env": "CartPole-v1", "num_workers": 0, "model": model, "train_batch_size": 200}
    )
    with tempfile.TemporaryDirectory() as name:
        trainer.save(name)
        own = seeds.files_of(Path(name))
    return trainer, (*[own] * 40, *seeds.checkpoints())


def _restore(root: Path, out: Path, rng: random.Random) -> None:
    del out
    trainer, _ = _trainer()
    if rng.random() < 0.1:
        file = io.BytesIO()
        files = [p for p in root.rglob("*") if p.is_file() and not p.is_symlink()]
        import zipfile

        with zipfile.ZipFile(file, "w") as archive:
            for path in files:
                name = str(path.relative_to(root)).encode("utf-8", "replace").decode()
                archive.writestr(name, path.read_bytes())
        trainer.restore_from_object(file.getvalue())
    else:
        trainer.restore(str(seeds.checkpoint_in(root)))


def _load(root: Path, out: Path, rng: random.Random) -> None:
    from rllib_compat import load

    del out, rng
    load(seeds.checkpoint_in(root), env="CartPole-v1", algorithm="PPO", num_workers=0).stop()


def _run(root: Path, out: Path, rng: random.Random) -> None:
    """Scripts are run as they are; of strangers may be the old Ray that is named."""
    del out
    old = rng.choice((root / "ray.whl", root / "site", root))
    script = rng.choice((root / "script.py", root / "none.py", root))
    more = rng.choice(
        ([], ["--report"], ["-m"], ["--package", rng.choice(_WORDS).replace("\0", "")])
    )
    command("run", "--old-ray", old, *more, script if more != ["-m"] else "json.tool")


# --- flags

_WORDS = (
    *("", " ", "0", "1", "-1", "-0", "2", "9" * 25, "9" * 5000, "1e308", "-1e400", "nan", "inf"),
    *("0x10", "1_0", "é", "\x1b[31m", "a\nb", "\udcff", "PPO", "nope", "..", "/", "/dev/null/x"),
    *("x" * 5000, ":", "a:b:c", "os:", ":os", "os:nope", "raising:x", "exiting:x", "wrong:x"),
    *("recursing:x", "text:x", "plain:Thing", "plain:f", "plain:g", "json:JSONEncoder", "a.b:c"),
    *("plain", "é:x", "{", "{}", "[]", "null", '{"a": 1}', '{"a": "plain:f"}', "[" * 9999),
    *('{"env": "raising:x"}', '{"a": ' + "9" * 5000 + "}", '{"lr": NaN}', '{"": {}}', "0.8.5"),
    *('{"num_workers": -1}', "9.9", "Box(4,)", "Discrete(2)", "p0=Box(4,)", "Discrete(-1)"),
    *("Box(" + "9" * 400 + ",)", "Tuple()", "demo", "trial", "config/params.json", "project"),
    *("raising.py", "demo/expected.npz", "out"),
)  # fmt: skip
_BASES: dict[str, list[str]] = {
    "artifacts": ["checkpoint_2"],
    "config": ["config/params.json"],
    "convert": ["demo", "../new/x", "--to", "msgpack", "-n", "2"],
    "doctor": [],
    "evaluate": ["demo", "--episodes", "1", "--steps", "3"],
    "inspect": ["demo"],
    "plot": ["trial", "--json"],
    "recorder": [],
    "train": ["--dry-run", "--run", "PPO", "--env", "CartPole-v1"],
    "upgrade": ["raising.py"],
    "verify": ["demo", "demo", "-n", "2"],
}
#: What a person may ask for, and would wait for or look at.
_LEFT_ALONE = {
    "recursive",
    "render",
    "episodes",
    "steps",
    "version",
    "overwrite",
    "remote",
    "dry_run",
}
_LEFT_ALONE |= {"video_dir", "monitor", "out", "track_progress", "use_shelve"}


@functools.cache
def _warm_verbs() -> None:
    for verb, arguments in _BASES.items():
        with contextlib.suppress(Refused, Told):
            command(verb, *arguments)


def _flags(root: Path, out: Path, rng: random.Random) -> None:
    """Odd values of each flag and argument of each verb."""
    del root
    out.mkdir()
    _warm_verbs()
    verb = rng.choice(list(_BASES))
    options: list[click.Option] = [
        one
        for one in importlib.import_module(f"rllib_compat.cli.{verb}").command.params
        if isinstance(one, click.Option) and one.name not in _LEFT_ALONE
    ]
    arguments = list(_BASES[verb])
    if arguments and rng.random() < 0.2:
        at = rng.randrange(len(arguments))
        # What is written goes to no other folder than the mutant's.
        arguments[at] = (
            rng.choice(_WORDS) if at != 1 or verb != "convert" else f"../new/{rng.choice('x%:')}"
        )
    for _ in range(rng.randrange(1, 4) if options else 0):
        option = rng.choice(options)
        flag = rng.choice(option.opts)
        value = [] if option.is_flag or option.count else [rng.choice(_WORDS)]
        arguments = [flag, *value, *arguments]
    command(verb, *(a.replace("\0", "") for a in arguments))


DOORS: dict[str, Door] = {
    "inspect": Door(_inspect, seeds.checkpoints, 56),
    "convert": Door(_convert, seeds.checkpoints, 15),
    "names": Door(_names, seeds.checkpoints, 12),
    "verify": Door(_verify, seeds.checkpoints, 6),
    "config": Door(_config, seeds.configs, 20),
    "optimizers": Door(
        _optimizers, lambda: seeds.checkpoints_with("optimizer"), 4, part="optimizer"
    ),
    "load_policy": Door(_load_policy, seeds.checkpoints, 12),
    "policy_file": Door(_policy_file, seeds.policy_files, 12),
    "write_model": Door(_write_model, seeds.custom_models, 10),
    "find": Door(_find, seeds.checkpoints, 6),
    "evaluate": Door(_evaluate, seeds.checkpoints, 0, rays_pickles=True),
    "given": Door(_given_config, seeds.given_configs, 10),
    "evaluate_config": Door(_evaluate_config, seeds.given_configs, 0, rays_pickles=True),
    "train": Door(_train, seeds.experiments, 10),
    "plot": Door(_plot, seeds.trials, 20),
    "artifacts": Door(_artifacts, seeds.simulators, 20),
    "upgrade": Door(_upgrade, seeds.scripts, 8, in_place=True),
    "recordings": Door(_recordings, seeds.recordings, 20),
    "recorded": Door(_recorded, seeds.recorded, 8),
    "episodes": Door(_episodes, seeds.episodes, 20),
    "serve": Door(_serve, seeds.requests, 10),
    "run": Door(_run, seeds.wheels, 4, forked=True),
    "flags": Door(
        _flags, seeds.everything, 20, files_change=False, in_place=True, rays_pickles=True
    ),
    "restore": Door(_restore, lambda: _trainer()[1], 0, rays_pickles=True),
    "load": Door(_load, seeds.checkpoints, 0, rays_pickles=True),
}
