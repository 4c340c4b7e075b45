"""What sync clients and small parts of Tune of Ray 1.13.0 do."""

import json
import os
import sys
import tempfile
import types
from pathlib import Path

for name in ("mxnet", "mxnet.callback", "mxnet.model"):  # which is installed nowhere
    sys.modules.setdefault(name, types.ModuleType(name))
sys.modules["mxnet"].symbol = types.SimpleNamespace(Symbol=object)
sys.modules["mxnet.model"].BatchEndParam = object
sys.modules["mxnet.callback"].save_checkpoint = sys.modules["mxnet.model"].save_checkpoint = None
from ray.rllib import evaluate, train  # noqa: E402
from ray.tune import session, sync_client, syncer  # noqa: E402
from ray.tune.checkpoint_manager import QueueItem  # noqa: E402
from ray.tune.error import TuneError, TuneGetNextExecutorEventError  # noqa: E402
from ray.tune.function_runner import FuncCheckpointUtil  # noqa: E402
from ray.tune.integration import mlflow, mxnet  # noqa: E402
from ray.tune.ray_trial_executor import noop_logger_creator  # noqa: E402
from ray.tune.trial import create_logdir  # noqa: E402
from ray.tune.utils import detect_checkpoint_function, detect_reporter  # noqa: E402
from ray.tune.utils.mock import LOCAL_DELETE_TEMPLATE, LOCAL_SYNC_TEMPLATE  # noqa: E402
from ray.tune.utils.placement_groups import get_tune_pg_prefix  # noqa: E402
from ray.tune.utils.trainable import PlacementGroupUtil, TrainableUtil  # noqa: E402


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


def names_in(folder):
    return sorted(file.name for file in Path(folder).iterdir())


def of_checkpoints(found, folder):
    home = Path(folder, "trial")
    made = [Path(TrainableUtil.make_checkpoint_dir(str(home), index)) for index in (1, "a", None)]
    told = [path.name for path in made] + [names_in(made[0])]
    (made[0] / "below").mkdir()
    (made[0] / "below" / "file").write_text("text")
    first = str(made[0] / "below" / "file")
    told.append(TrainableUtil.find_checkpoint_dir(first) == str(made[0]))
    told.append(TrainableUtil.find_checkpoint_dir(str(made[0])) == str(made[0]))
    told.append(TrainableUtil.find_rel_checkpoint_dir(str(home), first))
    told += [outcome(TrainableUtil.find_checkpoint_dir, name) for name in (folder, "no/path")]
    state = {"iteration": 7, "time": 1.5}
    told.append(TrainableUtil.process_checkpoint(str(made[0]), str(home), dict(state))[-2:])
    kept = TrainableUtil.process_checkpoint({"a": 1}, str(made[1]), dict(state, iteration=8))
    told += [Path(kept).name, outcome(TrainableUtil.process_checkpoint, 3, str(home), {})]
    told.append(outcome(TrainableUtil.process_checkpoint, folder, str(home), {}))
    told.append(sorted(TrainableUtil.load_checkpoint_metadata(str(made[0])).items()))
    told.append(outcome(TrainableUtil.load_checkpoint_metadata, str(made[2])))
    table = TrainableUtil.get_checkpoints_paths(str(home)).sort_values("training_iteration")
    told += list(table.columns) + list(table["training_iteration"])
    told += [Path(path).name for path in table["chkpt_path"]]
    packed = TrainableUtil.pickle_checkpoint(first)
    again = TrainableUtil.create_from_pickle(packed, folder + "/again")
    told += [Path(again).relative_to(folder), Path(again).read_text()]
    told.append(TrainableUtil.checkpoint_to_object(first) == packed)
    made = TrainableUtil.make_checkpoint_dir(str(home), 1, override=True)
    told.append(names_in(made))
    util, home = FuncCheckpointUtil, str(home)
    empty, temporary = util.mk_null_checkpoint_dir(home), util.mk_temp_checkpoint_dir(home)
    told += [Path(empty).name, len(Path(temporary).name), names_in(empty)]
    told += [util.is_null_checkpoint(empty), util.is_null_checkpoint(temporary)]
    told += [util.is_temp_checkpoint_dir(empty), util.is_temp_checkpoint_dir(temporary)]
    kept = util.create_perm_checkpoint(temporary, home, 9)
    told += [Path(kept).name, names_in(kept), util.is_temp_checkpoint_dir(temporary)]
    told.append(outcome(util.create_perm_checkpoint, kept, home, 10))
    low, high = QueueItem(1, "a"), QueueItem(2, "b")
    told += [low < high, high < low, low]
    found["checkpoints"] = told


def of_syncers(found):
    calls = []

    def copy(source, target, exclude=None):
        calls.append(f"{source} {target} {exclude}")
        if target == "broken":
            raise OSError(target)

    made = syncer.get_cloud_syncer("/a", "b", copy)
    told = [made is syncer.get_cloud_syncer("/a", "b"), made.sync_up_if_needed()]
    told += [made.sync_up_if_needed(), made.sync_down(["x"]), made.last_sync_up_time > 0]
    made.reset()
    told += [made.last_sync_up_time, made.sync_up(), made.wait(), made.close()]
    nothing = syncer.get_cloud_syncer("/c")
    told += [nothing.sync_up(), nothing.last_sync_up_time, nothing.sync_down_if_needed()]
    broken = syncer.get_cloud_syncer("/d", "broken", copy)
    told += [broken.sync_up(), broken.last_sync_up_time]
    told.append(outcome(syncer.get_cloud_syncer, "/e", "ftp://f"))
    syncer.set_sync_periods(types.SimpleNamespace(sync_period=0))
    told += [made.sync_up_if_needed(), made.sync_up_if_needed()]
    found["syncers"] = told + calls


def of_sessions(found, folder):
    told = [session.get_session(), session.is_session_enabled()]
    told += [session.init("reporter"), session.get_session(), session.is_session_enabled()]
    told += [session.init("another"), session.get_session()]
    told += [outcome(session.init, "another", ignore_reinit_error=False), session.shutdown()]
    told += [session.is_session_enabled(), get_tune_pg_prefix() == get_tune_pg_prefix()]
    told += [get_tune_pg_prefix()[:7], len(get_tune_pg_prefix())]
    told += [PlacementGroupUtil.get_remote_worker_options(4, 2, 1, None, None)]
    here = Path.cwd()
    told += [type(noop_logger_creator({}, folder + "/logger")).__name__, Path.cwd().name]
    os.chdir(here)
    error = TuneGetNextExecutorEventError("what")
    told += [isinstance(error, TuneError), str(error), error.traceback_str]

    def function(config):
        return config

    marked = mlflow.mlflow_mixin(function)
    told += [marked is function, [mixin.__name__ for mixin in marked.__mixins__]]
    metric = types.SimpleNamespace(get_name_value=lambda: [("accuracy", 0.5), ("loss", 2.0)])
    param, reported = types.SimpleNamespace(eval_metric=metric), []
    for metrics in (None, "loss", ["loss", "accuracy"], {"mine": "accuracy"}, ["other"]):
        callback = mxnet.TuneReportCallback(metrics)
        globals_of = type(callback).__call__.__globals__  # which reports by another name in each
        with_report = {name: globals_of.get(name) for name in ("tune", "functions")}
        report = types.SimpleNamespace(report=lambda **by_name: reported.append(by_name))
        globals_of.update(tune=report, functions=report)
        told.append(outcome(callback, param))
        globals_of.update(with_report)
    told += [outcome(callback, types.SimpleNamespace(eval_metric=None)), reported]
    told.append(mxnet.TuneCheckpointCallback(frequency=2)(1, None, {}, {}))
    found["sessions"] = told


#: Flags that Tune's parser has no more; where results go is another place for another user.
GONE = {"sync_on_checkpoint", "sync_function", "queue_trials", "local_dir"}


def of_all(found):
    with tempfile.TemporaryDirectory() as folder:
        of_commands(found, folder)
        of_clients(found)
        of_functions(found, folder)
        of_checkpoints(found, folder)
        of_sessions(found, folder)
    of_syncers(found)
    of_parsers(found)
    for name, told in found.items():
        found[name] = [str(value) for value in told]


QUESTIONS = (of_all,)
