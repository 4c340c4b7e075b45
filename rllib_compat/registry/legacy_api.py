"""What objects of the old Rays had, and ours can't have: a row a name, with what to do instead.

One table for all objects that stand in for those of old Rays. An object asks it in `__getattr__`,
where a name is found nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.neutral.errors import GoneError

_GROUP = "trainer.algorithm.env_runner_group"
_LEARNERS = "the learners took its place: trainer.algorithm.learner_group"
_LEARNING = "learning happens in the learners: algorithm.learner_group"
_REPLAY = "it is trainer.algorithm.local_replay_buffer"
_WEIGHTS = "load the weights yourself and call trainer.set_weights()"
_TRAINER = "call trainer.add_policy()"

#: Object → name → what took its place.
GONE: Mapping[str, Mapping[str, str]] = {
    "trainer": {
        "train_exec_impl": "override Algorithm.training_step",
        "state": "keep it in the callbacks object",
        "import_model": _WEIGHTS,
        "import_policy_model_from_h5": _WEIGHTS,
    },
    "trainer.optimizer": {
        "step": f"trainer.train() samples and learns; {_LEARNERS}",
        "replay_buffer": _REPLAY,
        "replay_buffers": _REPLAY,
        "learner": _LEARNERS,
        "reset": "workers are replaced when they fail, if restart_failed_env_runners is set",
    },
    "workers": {
        "add_workers": f"set num_workers in the config; {_GROUP} keeps its number",
        "reset": f"workers are replaced when they fail; see {_GROUP}.restart_failed_env_runners",
        "remove_failed_workers": "failed workers are replaced by Ray",
        "recreate_failed_workers": "failed workers are replaced by Ray",
        "add_policy": _TRAINER,
        "add_policy_to_workers": _TRAINER,
        "foreach_worker_async": f"it is {_GROUP}.foreach_env_runner_async",
        "fetch_ready_async_reqs": f"it is {_GROUP}.fetch_ready_async_reqs",
    },
    "worker": {
        "sampler": "the env runner samples itself: worker.sample()",
        "async_env": "environments of a runner are one gymnasium.vector.VectorEnv: worker.base_env",
        "output_writer": "set config.offline_data(output=…)",
        "learn_on_batch": _LEARNING,
        "compute_gradients": _LEARNING,
        "apply_gradients": _LEARNING,
    },
    "policy": {
        "learn_on_batch": _LEARNING,
        "compute_gradients": _LEARNING,
        "apply_gradients": _LEARNING,
        "postprocess_trajectory": (
            "write a learner connector: config.training(learner_connector=…)"
        ),
        "loss": "override Learner.compute_loss_for_module",
        "get_session": "there is no TensorFlow session any more",
        "exploration": "override RLModule.forward_exploration",
        "dist_class": "see RLModule.get_exploration_action_dist_cls()",
    },
}


def missing(of: object, kind: str, name: str) -> AttributeError:
    """The error for an attribute that an object does not have.

    Args:
        of: The object.
        kind: What stands for it in `GONE`: how old code called it.
        name: The attribute.

    Returns:
        A `GoneError` if the old Rays' object had it.
    """
    if name in GONE[kind]:
        where = f"{kind}.{name}"
        return GoneError(f"There is no `{where}` any more.", where=where, fix=GONE[kind][name])
    return AttributeError(f"{type(of).__name__} has no attribute {name!r}")
