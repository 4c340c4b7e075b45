"""What sync clients and small functions of Tune of Ray 1.13.0 do."""

import json
import tempfile
from pathlib import Path

from ray.rllib import evaluate, train
from ray.tune import sync_client
from ray.tune.trial import create_logdir
from ray.tune.utils import detect_checkpoint_function, detect_reporter
from ray.tune.utils.mock import LOCAL_DELETE_TEMPLATE, LOCAL_SYNC_TEMPLATE


def outcome(call, *arguments, **by_name):
    """What a call gives, or the kind of its error."""
    try:
        found = call(*arguments, **by_name)
    except Exception as error:
        return type(error).__name__
    return found if isinstance(found, (bool, int, str, type(None))) else type(found).__name__


def of_commands(found, folder):
    source = Path(folder, "a b")
    source.mkdir()
    (source / "file").write_text("text")
    client = sync_client.CommandBasedClient(
        "cp -r {source} {target} && echo '{options}' > " + folder + "/options",
        "cp -r {source}/. {target}",
        "rm -r {target}",
        "--not={pattern}",
    )
    told = [client.sync_up(str(source), folder + "/up", ["x*", "y"]), outcome(client.wait)]
    told += [(Path(folder) / "up" / "file").read_text(), Path(folder, "options").read_text()]
    told += [client.sync_down(str(source), folder + "/new/down"), outcome(client.wait)]
    told += [Path(folder, "new", "down", "file").exists(), client.is_running]
    told += [client.delete(folder + "/up"), outcome(client.wait), Path(folder, "up").exists()]
    told += [client.delete(folder + "/up"), outcome(client.wait), outcome(client.wait)]
    slow = sync_client.CommandBasedClient("sleep 0.3; : {source} {target}", ": {source} {target}")
    told += [slow.sync_up("a", "b"), slow.is_running, slow.sync_up("a", "b"), slow.delete("c")]
    told += [outcome(slow.wait), slow.is_running, slow.delete("c"), outcome(slow.wait)]
    slow.sync_up("a", "b")
    told += [slow.reset(), slow.is_running]
    broken = sync_client.CommandBasedClient("false {source} {target}", "true {source} {target}")
    broken.sync_up("a", "b")
    told += [outcome(broken.wait_or_retry, max_retries=2, backoff_s=0)]
    matched = sync_client.CommandBasedClient(
        "echo '{source} {target} {options}' > " + folder + "/options",
        ": {source} {target}",
        exclude_template="-x {regex_pattern}",
    )
    matched.set_logdir(folder)
    matched.sync_up("a", "b", ["x*", "y"])
    told += [outcome(matched.wait), Path(folder, "options").read_text(), outcome(matched.close)]
    for wrong in (("{source}", "{source}{target}"), ("x", "y"), (1, 2)):
        told.append(outcome(sync_client.CommandBasedClient, *wrong))
    told.append(outcome(sync_client.CommandBasedClient, LOCAL_SYNC_TEMPLATE, "x", "y"))
    both = LOCAL_SYNC_TEMPLATE, LOCAL_SYNC_TEMPLATE
    told.append(outcome(sync_client.CommandBasedClient, *both, exclude_template="no"))
    found["commands"] = told


def of_clients(found):
    calls = []

    def copy(source, target, exclude=None):
        calls.append(f"{source} {target} {exclude}")

    made = sync_client.get_sync_client(copy)
    told = [type(made).__name__, made.sync_up("a", "b", ["c"]), made.sync_down("b", "a")]
    told += [made.delete("a"), made.wait(), made.reset(), made.close(), made.wait_or_retry()]
    told += [type(sync_client.get_sync_client(LOCAL_SYNC_TEMPLATE)).__name__]
    told += [sync_client.get_sync_client(LOCAL_SYNC_TEMPLATE).delete_template]
    told += [sync_client.get_sync_client(None), outcome(sync_client.get_sync_client, 3)]
    told += [outcome(sync_client.get_sync_client, copy, LOCAL_DELETE_TEMPLATE)]
    told += [outcome(sync_client.get_cloud_sync_client, "ftp://a")]
    told += [sync_client.NOOP.sync_up("a", "b"), outcome(sync_client.noop, 1, 2)]
    told += [outcome(sync_client.SyncClient().sync_up, "a", "b"), sync_client.SyncClient().wait()]
    found["clients"] = told + calls
    names = "S3_PREFIX", "GS_PREFIX", "ALLOWED_REMOTE_PREFIXES", "noop_template"
    found["constants"] = [getattr(sync_client, name) for name in names]
    found["templates"] = [LOCAL_SYNC_TEMPLATE, LOCAL_DELETE_TEMPLATE]


def of_functions(found, folder):
    functions = (
        lambda config: None,
        lambda config, reporter: None,
        lambda config, checkpoint_dir=None: None,
        lambda config, reporter=None, **more: None,
        lambda config, checkpoint_dir, more: None,
        lambda: None,
    )
    for function in functions:
        told = found.setdefault("functions", [])
        told += [detect_reporter(function), outcome(detect_checkpoint_function, function)]
        told += [outcome(detect_checkpoint_function, function, abort=True)]
        told += [outcome(detect_checkpoint_function, function, partial=True)]
    first = create_logdir("name", folder + "/logs")
    second = create_logdir("name", folder + "/logs")
    told = [first == folder + "/logs/name", Path(first).is_dir(), Path(second).is_dir()]
    found["folders"] = [*told, Path(second).name[:5], len(Path(second).name)]


def of_parsers(found):
    lines = {
        train: ["", '--run PPO --env E --stop {"a":1} -v --num-samples 3', "-f x --torch --resume"],
        evaluate: ["c --run PPO", '--run DQN --env E --steps 5 --config {"a":1} --use-shelve'],
    }
    for module, given in lines.items():
        parser = module.create_parser()
        for line in given:
            told = vars(parser.parse_args(line.split()))
            known = sorted((name, value) for name, value in told.items() if name not in GONE)
            found.setdefault(module.__name__.rpartition(".")[2], []).append(json.dumps(known))
        actions = {a.dest: a for a in parser._actions if a.dest not in GONE}
        kinds = [(n, a.option_strings, str(a.nargs), a.required) for n, a in actions.items()]
        found[module.__name__.rpartition(".")[2]].append(json.dumps(sorted(kinds)))


#: Flags that Tune's parser has no more; where results go is another place for another user.
GONE = {"sync_on_checkpoint", "sync_function", "queue_trials", "local_dir"}


def of_all(found):
    with tempfile.TemporaryDirectory() as folder:
        of_commands(found, folder)
        of_clients(found)
        of_functions(found, folder)
    of_parsers(found)
    for name, told in found.items():
        found[name] = [str(value) for value in told]


QUESTIONS = (of_all,)
