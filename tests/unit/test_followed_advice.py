"""Errors whose advice is followed: the same call, changed as the error's text says, succeeds."""

import ast
import importlib
import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import rllib_compat as compat
from rllib_compat.config.files import read_data, read_experiments
from rllib_compat.episode_data import EpisodeRecorder
from rllib_compat.errors import CompatError
from rllib_compat.execution.rollout_ops import ConcatBatches
from rllib_compat.runtime import legacy_callbacks
from rllib_compat.trainer.classes import trainer_class
from tests.unit.test_advice import verbs

MUSEUM = Path(__file__).parents[1] / "legacy"
CASE = MUSEUM / "0.8.5/ppo-torch-share-tanh"
FACTS = json.loads((CASE / "case.json").read_text())["policies"]["default_policy"]
OLD = {
    "path": CASE / "ckpt/checkpoint_2/checkpoint-2",
    "config": CASE / "params.json",
    "action_space": FACTS["action_space"],
}
#: Arguments with the values that advice shows.
ARGUMENT = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\{[^}]*\}|[\w.]+)")
#: Advice that shows values of the argument that the error is about; the first one is taken.
VALUE = re.compile(
    r"(?:such as|one of|one of its policies:|these events:|the suffixes|[Ss]et it to|text such as"
    r"|below it:|ends with|number from|to do: Pass) "
    r"(?!an? |one |its |these |the )('[^']*'|\{[^}]*\}|[\w./:-]+)"
)


def follow(error, given, about):
    """The arguments of a call, changed as the text of its error says."""
    *_, todo = str(error).partition("  to do:")
    todo = f"to do:{todo}"
    if findings := getattr(error, "findings", ()):
        config = dict(given["config"])
        for finding in findings:
            change_key(config, finding)
        return given | {"config": config}
    if shown := ARGUMENT.findall(todo):
        return given | {name: literal(value) for name, value in shown}
    value = literal(VALUE.search(todo)[1])
    if "below it" in todo:
        value = given[about] / value
    elif "suffix" in str(error) or "ends with" in todo:
        value = Path(given[about]).with_suffix(f".{value.strip('.')}")
    elif isinstance(given[about], dict):
        value = {value: next(iter(given[about].values()))}
    elif isinstance(given[about], list) and not isinstance(value, dict):
        value = [value]
    return given | {about: value}


def change_key(config, finding):
    """Changes a key as a row of the error says: renames it, sets what it may be, or removes it."""
    *sections, key = finding.path.removeprefix("$.").split(".")
    for section in sections:
        config[section] = config = dict(config[section])
    value = config.pop(key)
    if near := re.search(r"did you mean '(\w+)'", finding.message):
        config[near[1]] = value
    elif first := re.search(
        r"may be one of (\"\w+\")|may be a (?:whole )?number from (-?\d+)", finding.message
    ):
        config[key] = literal(first[1] or first[2])


def literal(text):
    """A value as advice writes it: a literal of Python, or a word."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text.rstrip(".,:")


def settings(algorithm):
    """A function that validates settings of an algorithm of this package."""

    def validate(**given):
        module = importlib.import_module(f"rllib_compat.algorithms.{algorithm.lower()}")
        config = getattr(module, f"{algorithm}Config")().environment("CartPole-v1")
        config.update_from_dict(given)
        config.validate()

    return validate


def built(**given):
    """Translates a config, and makes the installed Ray's of it."""
    return compat.translate(**given).algorithm_config


def converted(path, out, **given):
    return compat.convert(path, out, **{"to": "safetensors"} | given)


PPO = {"algorithm": "PPO"}
#: What is called, with what, and which argument an error is about that names none.
CALLS = {
    "a misspelled key": (built, PPO | {"config": {"train_batch_sise": 4000}}, None),
    "a misspelled key of the model": (
        built,
        PPO | {"config": {"model": {"fcnet_hidden": [8]}}},
        None,
    ),
    "several misspelled keys": (built, PPO | {"config": {"gama": 0.9, "num_worker": 1}}, None),
    "an unknown stack": (built, PPO | {"config": {}, "api_stack": "x"}, "api_stack"),
    "an unknown choice": (built, PPO | {"config": {}, "on_unknown": "x"}, "on_unknown"),
    "an unknown algorithm": (built, {"algorithm": "PPPO", "config": {}}, "algorithm"),
    "a Ray that is too old": (built, PPO | {"config": {}, "legacy_ray": "0.1"}, "legacy_ray"),
    "no Ray's version": (built, PPO | {"config": {}, "legacy_ray": "old"}, "legacy_ray"),
    "a list for a config": (built, PPO | {"config": ["lr"]}, "config"),
    "text for a number": (built, PPO | {"config": {"train_batch_size": "many"}}, None),
    "text for a rate": (built, PPO | {"config": {"lr": "fast"}}, None),
    "a negative number": (built, PPO | {"config": {"num_workers": -3}}, None),
    "text for GPUs": (built, PPO | {"config": {"num_gpus": "a"}}, None),
    "a number for policies": (built, PPO | {"config": {"multiagent": {"policies": 3}}}, None),
    "a number for callbacks": (built, PPO | {"config": {"callbacks": 3}}, None),
    "a number for a dict": (built, PPO | {"config": {"env_config": 3}}, None),
    "an unknown activation": (built, PPO | {"config": {"model": {"fcnet_activation": "x"}}}, None),
    "an unknown batch mode": (built, PPO | {"config": {"batch_mode": "x"}}, None),
    "a number for filters": (built, PPO | {"config": {"model": {"conv_filters": 3}}}, None),
    "GAE without a critic": (settings("A2C"), {"use_critic": False}, None),
    "microbatches of 0": (settings("A2C"), {"microbatch_size": 0}, None),
    "microbatches in A3C": (settings("A3C"), {"microbatch_size": 3}, "microbatch_size"),
    "a learner beside a bandit": (settings("BanditLinTS"), {"num_learners": 2}, None),
    "passes over recordings": (settings("CRR"), {}, None),
    "an unknown weighting": (settings("CRR"), {"weight_type": "a", "input_": "x"}, None),
    "a short fragment": (settings("DDPG"), {"rollout_fragment_length": 3, "n_step": 5}, None),
    "a short fragment of MADDPG": (
        settings("MADDPG"),
        {"rollout_fragment_length": 1, "n_step": 3},
        None,
    ),
    "whole episodes in DDPPO": (settings("DDPPO"), {"batch_mode": "complete_episodes"}, None),
    "an unknown backend": (
        settings("DDPPO"),
        {"torch_distributed_backend": "x"},
        "torch_distributed_backend",
    ),
    "learners beside DDPPO": (settings("DDPPO"), {"num_learners": 2}, None),
    "no shards": (settings("APEX"), {"num_replay_buffer_shards": 0}, None),
    "no delay": (settings("TD3"), {"policy_delay": 0}, None),
    "an unknown mixer": (settings("QMIX"), {"mixer": "x"}, None),
    "an unknown trainer": (trainer_class, {"name": "PPOTrainr"}, "name"),
    "an unknown unit": (
        ConcatBatches,
        {"min_batch_size": 3, "count_steps_by": "x"},
        "count_steps_by",
    ),
    "an unknown event": (legacy_callbacks.resolve, {"source": {"on_episod_end": print}}, "source"),
    "an unknown format": (EpisodeRecorder, {"format": "x"}, "format"),
    "an unknown suffix": (read_data, {"source": "config.txt"}, "source"),
    "an unknown name in a file": (read_experiments, {"source": "config.py:CONFI"}, "source"),
    "a folder above a checkpoint": (converted, OLD | {"path": CASE, "out": "new"}, "path"),
    "an unknown policy": (compat.load_policy, OLD | {"policy_id": "p"}, "policy_id"),
    "no inputs": (converted, OLD | {"out": "new", "inputs": 0}, "inputs"),
    "an output that exists": (converted, OLD | {"out": "there"}, None),
    "an unknown target": (converted, OLD | {"out": "new", "to": "onx"}, "to"),
    "a policy without the suffix": (converted, OLD | {"out": "new", "to": "policy"}, "out"),
}


@pytest.mark.parametrize(("call", "given", "about"), CALLS.values(), ids=CALLS)
def test_who_follows_advice_succeeds(call, given, about, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text('{"lr": 0.001}')
    Path("config.py").write_text('CONFIG = {"lr": 0.001}')
    if given.get("out") == "there":
        call(**given)
    with pytest.raises(CompatError) as caught:
        call(**given)
    error = caught.value
    for _ in range(3):  # a second error may show once the first is away
        given = follow(error, given, about)
        try:
            call(**given)
            break
        except CompatError as another:
            error = another
    else:
        raise error


def call_verb(command):
    """The error of a command, as the command line shows it; None if it succeeds."""
    error = CliRunner().invoke(verbs(), command, standalone_mode=False).exception
    if isinstance(error, click.UsageError):
        return f"{error.message}\n  to do: {error.message}"
    assert error is None or isinstance(error, CompatError), (command, error)
    return error and error.for_command_line()


def follow_in_shell(command, error, spaces):
    """A command, changed as the text of its error says; the spaces are those of the case."""
    *_, todo = error.partition("  to do: ")
    if shown := re.search(r"rllib-compat (\w+ [^`]+)", todo):
        names = {"OLD": command[1], "NEW": command[2], "FILE.py": "own.py"}
        return [names.get(part, part) for part in shlex.split(shown[1])]
    if re.search(r"[Ll]eave|[Oo]mit", todo):
        left_out = re.search(r"--[a-z-]+", todo)[0]
        place = command.index(left_out)
        flag = place + 1 == len(command) or command[place + 1].startswith("-")
        return command[:place] + command[place + (1 if flag else 2) :]
    shown = re.findall(r"(--[a-z-]+)((?: (?:\w+=)?'[^']+'| [a-z_0-9]+(?=[.`]))?)", todo)
    option, value = shown[0]
    fact = spaces.get(option.strip("-").replace("-", "_"))
    given = [fact] if fact else shlex.split(value)
    if option in command:
        place = command.index(option)
        return [*command[: place + 1], *given, *command[place + 2 :]]
    return [*command, option, *given]


OWN_MODEL = MUSEUM / "1.13.0/ppo-tf-custommodel/ckpt/checkpoint_000002"
TWO = MUSEUM / "0.8.5/ppo-torch-multiagent/checkpoint_2/checkpoint-2"
#: Commands that end with an error; the last of each ends well when it is changed as that says.
COMMANDS = {
    "an output that exists": (
        f"convert {OLD['path']} there --to safetensors",
        f"convert {OLD['path']} there --to safetensors",
    ),
    "a file for an archive": (f"convert {OLD['path']} new --to safetensors --recursive",),
    "nothing to compare with": (
        f"convert {OLD['path']} new --to msgpack",
        f"verify {OLD['path']} new --config {OLD['config']} -n 3",
    ),
    "two policies in a file": (f"convert {TWO} new.rlpolicy --to policy",),
    "your own model as ONNX": (f"convert {OWN_MODEL} new --to onnx",),
    "a module for a known model": (f"convert {OLD['path']} new --write-model own.py --to msgpack",),
    "a script for a file of experiments": ("train -f script.py",),
}


@pytest.mark.parametrize("commands", COMMANDS.values(), ids=COMMANDS)
def test_who_follows_advice_of_a_command_succeeds(commands, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("print('ran')\n")
    *before, command = map(shlex.split, commands)
    assert not any(map(call_verb, before))
    error = call_verb(command)
    assert error
    for _ in range(3):
        command = follow_in_shell(command, error, FACTS)
        if not (error := call_verb(command)):
            break
    assert not error


@pytest.mark.parametrize(
    ("command", "name", "text", "place"),
    [
        ("train -f own.yaml", "own.yaml", "mine:\n  run: [PPO\n", "line 3"),
        (f"convert {OLD['path']} new --config own.json", "own.json", '{"lr": }', "column 8"),
        ("config own.json", "own.json", '{"lr": }', "column 8"),
    ],
)
def test_a_file_that_people_write_is_corrected_where_its_error_is(
    command, name, text, place, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    error = call_verb(shlex.split(command))
    assert place in error
    assert "Correct what the message names; a file that a program wrote" in error
