"""What errors, reports and old names advise is there: pages, verbs, flags, modules, classes."""

import ast
import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import rllib_compat
import rllib_compat.cli
from rllib_compat import Given, errors
from rllib_compat.errors import CompatError
from rllib_compat.neutral.advice import ARGUMENTS, for_python
from rllib_compat.registry import old_names
from rllib_compat.upgrade import upgrade

PACKAGE = Path(rllib_compat.__file__).parent
MUSEUM = Path(__file__).parents[1] / "legacy"
GUIDE = Path(__file__).parents[2] / "migration_guide"


def texts(node):
    """The text of an expression, with {} for what is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            texts(part) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return texts(node.left) + texts(node.right)
    if isinstance(node, ast.IfExp):
        return f"{texts(node.body)} / {texts(node.orelse)}"
    return ""


def assigned(tree):
    """Name → what a module assigns to it, in whatever scope."""
    found = defaultdict(list)
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    found[name.id].append(value)
    return found


def meant(node, named):
    """The expressions that one stands for: of a name, what is assigned to it."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        for value in named[node.id]:
            yield from value.values if isinstance(value, ast.Dict) else [value]
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from meant(value, named)
    else:
        yield node


#: Arguments and attributes that hold advice.
HOLD_ADVICE = ("fix", "hint", "advice")
TREES = {
    file.relative_to(PACKAGE): ast.parse(file.read_text("utf-8"))
    for file in sorted(PACKAGE.rglob("*.py"))
}
NODES = [(file, node) for file, tree in TREES.items() for node in ast.walk(tree)]


def places_of_advice():
    """Name of a function → which of its positional arguments is advice."""
    for _, node in NODES:
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
            if found := [names.index(name) for name in HOLD_ADVICE if name in names]:
                yield node.name, found[0]


def values_of_advice():
    """The expressions that are advice, each with its file."""
    places = dict(places_of_advice())
    for file, node in NODES:
        name = node.arg if isinstance(node, ast.keyword) else None
        if isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
        if name in HOLD_ADVICE:
            yield file, node.value
        elif isinstance(node, ast.Call):
            place = places.get(called(node), len(node.args))
            yield from ((file, value) for value in node.args[place : place + 1])


def called(node):
    """The last part of the name of what a call calls."""
    return ast.unparse(node.func).rpartition(".")[2]


def advice():
    named = {file: assigned(tree) for file, tree in TREES.items()}
    for file, node in values_of_advice():
        for value in meant(node, named[file]):
            if text := texts(value):
                yield f"{file}:{value.lineno}", text
    for name, text in old_names.REMOVED.items():
        yield name, text


ADVICE = list(advice())


#: Flags of pip, and click's own.
OF_OTHERS = {"--help", "--no-deps", "--only-binary", "--python-version", "--upgrade"}
#: What is there with a package that the tests do not have.
NEEDS_MORE = {"ray.train.tensorflow.TensorflowTrainer"}


#: Prints those of its arguments that can't be imported; in a process of its own, since modules of
#: this package take the place of Ray's when they are imported.
ABSENT = """
import pkgutil, sys, warnings
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        print(name)
"""


def verbs():
    """The group of all verbs."""
    return next(
        value for value in vars(rllib_compat.cli).values() if isinstance(value, click.Group)
    )


def flags():
    found, main = set(), verbs()
    context = click.Context(main)
    for verb in main.list_commands(context):
        for parameter in main.get_command(context, verb).params:
            found |= set(parameter.opts) | set(parameter.secondary_opts)
    return found


def test_there_is_advice():
    assert len(ADVICE) > 450


#: Errors whose text alone is read, as the reason of a finding.
REASONS = {Path("networks/optimizers.py"): "an optimizer state that is not carried over"}


def test_every_error_says_what_to_do():
    """With a `fix`; an error of a kind about which one thing can be done has it of its class."""
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    without = set()
    for file, node in NODES:
        kind = kinds.get(called(node)) if isinstance(node, ast.Call) else None
        if kind and issubclass(kind, CompatError) and not kind.advice:
            fixes = [ast.unparse(word.value) for word in node.keywords if word.arg == "fix"]
            if fixes in ([], ["None"], ["''"]):
                without.add(file)
    assert without == set(REASONS)


def test_pages_of_the_guide_that_advice_names_are_there():
    titles = [
        line.strip("# \n") for file in GUIDE.rglob("*.md") for line in file.open() if line[0] == "#"
    ]
    named = {
        (place, title)
        for place, text in ADVICE
        for title in re.findall(r'guide[^"]{0,12}"([^"]+)"', text)
    }
    assert {(p, t) for p, t in named if t not in titles} == set()
    pages = {
        (p, page)
        for p, text in ADVICE
        for page in re.findall(r"migration_guide/([\w/]+\.md)", text)
    }
    assert {(p, page) for p, page in pages if not (GUIDE / page).exists()} == set()


def test_verbs_and_flags_that_advice_names_are_there():
    there = set(verbs().list_commands(click.Context(verbs()))) | {"rollout"}
    named = {(p, verb) for p, text in ADVICE for verb in re.findall(r"`rllib-compat (\w+)", text)}
    assert {(p, verb) for p, verb in named if verb not in there} == set()
    known = flags()
    asked = {(p, f) for p, text in ADVICE for f in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)}
    assert {(p, flag) for p, flag in asked if flag not in known | OF_OTHERS} == set()


#: Options of verbs that have no counterpart in Python, and one that is named beside its argument.
OF_VERBS_ALONE = {
    "--data",
    "--legacy-ray",
    "--queue-trials",
    "--recursive",
    "--run",
    "--num-workers",
}
OF_VERBS_ALONE |= {"--best", "--video-dir", "--write-model"}


def test_callers_of_python_read_arguments():
    """Each option that advice names is an argument of a function that somebody may have called."""
    functions = [rllib_compat.convert, rllib_compat.load, rllib_compat.translate, Given]
    functions += [upgrade]
    known = {name for call in functions for name in inspect.signature(call).parameters}
    for place, text in ADVICE:
        text = text.replace("--{}-space", "--action-space")
        outside = re.sub(r"`[^-`][^`]*`", "", text)
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", outside)) - OF_OTHERS - OF_VERBS_ALONE
        shown = re.sub(r"`[^-`][^`]*`", "", for_python(text))
        assert "--" not in re.sub("|".join(OF_OTHERS | OF_VERBS_ALONE), "", shown), place
        for option in options:
            argument = re.findall(r"(\w+)=", ARGUMENTS[option])
            assert set(argument) <= known, (place, option)


@pytest.mark.parametrize(
    ("option", "argument"),
    [
        ("Give --config params.json.", 'Give config="params.json".'),
        ("or --config '{}' if", "or config={} if"),
        ("the right --config, or", "the right config=…, or"),
        ("--env with your environment", "env=… with your environment"),
        (
            "--action-space p='Box([-2, 0], [2, 1], (2,))'.",
            'action_space={"p": "Box([-2, 0], [2, 1], (2,))"}.',
        ),
        ("--policy a --policy 'b c' and more", 'given=Given(policies=["a", "b c"]) and more'),
        ("--algorithm DQN, if", 'algorithm="DQN", if'),
        ("`--to msgpack` keeps all", '`to="msgpack"` keeps all'),
        ("`rllib-compat convert --to onnx`", "`rllib-compat convert --to onnx`"),
        ('--weights-map \'{"0": "enc"}\'; see', 'given=Given(weights_map={"0": "enc"}); see'),
        (
            "--num-gpus N, or --keep-resources",
            "given=Given(num_gpus=N), or given=Given(keep_resources=True)",
        ),
        ("--lr 3", "--lr 3"),
    ],
)
def test_an_option_becomes_an_argument(option, argument):
    assert for_python(option) == argument
    error = CompatError("Found.", fix=option)
    assert str(error).endswith(argument)
    assert error.for_command_line().endswith(option)


def test_modules_that_advice_names_are_there():
    named = {
        name
        for _, text in ADVICE
        for name in re.findall(r"\b(?:ray|gymnasium|rllib_compat)(?:\.\w+)+", text)
    }
    asked = [sys.executable, "-c", ABSENT, *sorted(named)]
    absent = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert set(absent) <= NEEDS_MORE


def convert_in_python(path, advised):
    """The error of a call with arguments as advice writes them, if it raises one."""
    arguments = {name: ast.literal_eval(value) for name, value in advised.items()}
    try:
        rllib_compat.convert(path, "new", to="onnx", dry_run=True, inputs=3, **arguments)
    except CompatError as error:
        return str(error)
    return None


def convert_by_command(path, advised):
    """The same of a command."""
    options = [part for name, value in advised.items() for part in (name, *shlex.split(value))]
    command = ["convert", str(path), "new", "--to", "onnx", "--dry-run", "-n", "3", *options]
    error = CliRunner().invoke(verbs(), command, standalone_mode=False).exception
    assert error is None or isinstance(error, CompatError), (command, error)
    return error and error.for_command_line()


@pytest.mark.parametrize(
    ("convert", "written"),
    [
        (convert_in_python, r"(\w+)=(\"[^\"]+\"|\{.*?\})"),
        (convert_by_command, r"(--[a-z-]+) ((?:\w+=)?'[^']+'|[\w.-]*\w)"),
    ],
    ids=["Python", "command line"],
)
@pytest.mark.parametrize("case", ["ppo-torch-share-tanh", "ppo-tf-cont", "ddpg-torch-asym2"])
def test_who_follows_advice_converts_a_checkpoint_alone(
    case, convert, written, tmp_path, monkeypatch
):
    """A checkpoint's file is all there is; the config lies in the current folder.

    Who follows advice puts the facts of the checkpoint in the place of those of an example.
    """
    folder = MUSEUM / "0.8.5" / case
    known = json.loads((folder / "case.json").read_text())
    facts = known["policies"]["default_policy"] | {"algorithm": known["algo"]}
    here, alone = tmp_path / "mine" / "here", tmp_path / "old" / "alone"
    here.mkdir(parents=True)
    alone.mkdir(parents=True)
    shutil.copy(folder / "params.json", here)
    path = shutil.copy(folder / known["checkpoint"], alone)
    monkeypatch.chdir(here)
    advised = {}
    while error := convert(path, advised):
        new = dict(re.findall(written, error.partition("to do: ")[2]))
        name = next((name for name in new if name not in advised), None)
        assert name, error
        example = re.search(r"\w+\(.*\)|PPO", new[name])
        fact = facts.get(name.strip("-").replace("-", "_"))
        advised[name] = new[name].replace(example[0], fact) if example and fact else new[name]
    assert len(advised) > 1
