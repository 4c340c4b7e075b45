"""Records what came of training loops in an old Ray.

usage: record_loops.py OUT.json: loops around workers, without a Ray that runs
usage: record_loops.py --running OUT.json [LOOP…]: those around trainers, which need one; of the
    loops that are named alone, the file is changed
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import gym
import ray
import running_loops
import training_loops
from ray import tune
from ray.rllib.agents.trainer import COMMON_CONFIG, with_common_config
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.evaluation.metrics import collect_metrics
from ray.rllib.evaluation.worker_set import WorkerSet
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch
from ray.tune.registry import register_env

IS_0_8 = ray.__version__.startswith("0.8")
IS_1_12 = ray.__version__ in ("1.12.1", "1.13.0")
LINE = running_loops.make_env(gym)


def find(module, name):
    """A name of this Ray, or None."""
    try:
        return getattr(importlib.import_module("ray.rllib." + module), name, None)
    except ImportError:
        return None


#: The modules that operators of execution plans are in.
OPERATORS = (
    "execution.concurrency_ops",
    "execution.metric_ops",
    "execution.replay_ops",
    "execution.rollout_ops",
    "execution.train_ops",
    "execution.replay_buffer",
    "execution.buffers.multi_agent_replay_buffer",
    "optimizers.async_replay_optimizer",
)


def find_operator(name):
    """An operator of execution plans."""
    if name == "LocalReplayBuffer" and IS_1_12:
        name = "MultiAgentReplayBuffer"
    for file in OPERATORS:
        found = find(file, name)
        if found is not None:
            return found
    raise running_loops.MissingError(name)


def build_trainer(name, policy, plan):
    """A trainer's class of a policy and a plan."""
    build = find("agents.trainer_template", "build_trainer")
    if build is not None:
        config = with_common_config({})
        return build(name=name, default_policy=policy, execution_plan=plan, default_config=config)
    trainer = find("agents.trainer", "Trainer")

    class Planned(trainer):
        def get_default_policy_class(self, config):
            return policy

        execution_plan = staticmethod(plan)

    return Planned


def make_trainer(algorithm, config):
    module = importlib.import_module("ray.rllib.agents." + algorithm.lower())
    return getattr(module, algorithm + "Trainer")(config=config)


def make_workers(policy, fragment):
    config = dict(COMMON_CONFIG, rollout_fragment_length=fragment, num_workers=0)
    given = {"policy" if IS_0_8 else "policy_class": policy, "trainer_config": config}
    if IS_0_8:
        return WorkerSet(lambda context: LINE(), **given)
    return WorkerSet(env_creator=lambda context: LINE(), **given)


def make_gpu_workers():
    """Workers of a policy of TensorFlow, which `LocalMultiGPUOptimizer` insisted on."""
    from ray.rllib.agents.ppo.ppo import DEFAULT_CONFIG
    from ray.rllib.agents.ppo.ppo_tf_policy import PPOTFPolicy

    config = dict(DEFAULT_CONFIG, rollout_fragment_length=training_loops.STEPS, num_workers=0)
    return WorkerSet(OLD.make_env, policy=PPOTFPolicy, trainer_config=config)


def watch_minibatches(optimizer):
    """The sizes of the minibatches that an optimizer for GPUs takes from now on."""
    sizes = []
    for of_policy in optimizer.optimizers.values():

        def optimize(*given, own=of_policy, call=of_policy.optimize):
            sizes.append(own._loaded_per_device_batch_size)
            return call(*given)

        of_policy.optimize = optimize
    return sizes


def run_tune(function, **more):
    folder = tempfile.mkdtemp()
    return tune.run(function, verbose=0, local_dir=folder, **more).trials[0]


def last_checkpoint(trial):
    return (
        trial.checkpoint.value
        if hasattr(trial.checkpoint, "value")
        else trial.checkpoint.dir_or_data
    )


OLD = SimpleNamespace(
    COMMON_CONFIG=COMMON_CONFIG,
    LocalMultiGPUOptimizer=find("optimizers", "LocalMultiGPUOptimizer"),
    Policy=Policy,
    Pushing=training_loops.make_policy(Policy),
    RandomPolicy=find("examples.policy.random_policy", "RandomPolicy")
    or find("examples.multi_agent_custom_policy", "RandomPolicy"),
    SampleBatch=SampleBatch,
    WorkerSet=WorkerSet,
    adds_policies=hasattr(find("agents.trainer", "Trainer"), "add_policy"),
    build_trainer=build_trainer,
    capacity="capacity" if IS_1_12 else "buffer_size",
    collect_metrics=collect_metrics,
    execution=find_operator,
    function_checkpoints=None if IS_0_8 else (tune.checkpoint_dir, tune.report),
    get=ray.get,
    last_checkpoint=last_checkpoint,
    make_env=lambda context=None: gym.make("CartPole-v1"),
    make_gpu_workers=make_gpu_workers,
    make_workers=make_workers,
    SyncBatchReplayOptimizer=find("optimizers", "SyncBatchReplayOptimizer"),
    SyncReplayOptimizer=find("optimizers", "SyncReplayOptimizer"),
    SyncSamplesOptimizer=find("optimizers", "SyncSamplesOptimizer"),
    policy_argument="policy" if IS_0_8 else "policy_class",
    put=ray.put,
    settings={"use_pytorch": True, "use_exec_api": True} if IS_0_8 else {"framework": "torch"},
    trainer=make_trainer,
    tune=run_tune,
    watch_minibatches=watch_minibatches,
)
if not IS_0_8:
    OLD.WorkerSet = lambda creator, **rest: WorkerSet(env_creator=creator, **rest)


def main(out, running, names):
    if running:
        more = {} if IS_0_8 else {"include_dashboard": False}
        ray.init(num_cpus=4, **more)
        pair = running_loops.make_pair(MultiAgentEnv, LINE)
        register_env("line", lambda context: LINE(context))
        register_env("pair", lambda context: pair(context))
        OLD.make_env = LINE
        found = json.loads(Path(out).read_text()) if names else {}
        for name, value in running_loops.play(OLD, names):
            found[name] = value
            write(out, found)
    else:
        ray.get = lambda references, **_: list(references)  # no workers are remote, no Ray runs
        write(out, training_loops.play(OLD))


def write(out, found):
    Path(out).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    running = sys.argv[1] == "--running"
    out, *names = sys.argv[1 + running :]
    main(out, running, names)
