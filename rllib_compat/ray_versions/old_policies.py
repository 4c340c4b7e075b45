"""Policy classes of people's own, which only the old API stack trains (Ray 2.40 – 2.60)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import Algorithm, AlgorithmConfig, AnyBatch, Policy


def is_policy_class(given: object) -> bool:
    """Whether something is a policy class that the old API stack can train."""
    from ray.rllib.policy.policy import Policy

    return isinstance(given, type) and issubclass(given, Policy)


def with_policy(algorithm: type, policy: type, *, plain: bool) -> type:
    """The algorithm's class with another policy for all that name none.

    A `plain` one samples, and learns once from each batch, as trainers without an execution plan
    did.
    """
    policy = as_written(policy)

    def get_default_policy_class(cls: type, config: AlgorithmConfig) -> type:
        del cls, config
        return policy

    members: dict[str, Any] = {"get_default_policy_class": classmethod(get_default_policy_class)}
    if plain:
        members["training_step"] = learn_once_on_the_old_stack
    return type(algorithm.__name__, (algorithm,), members)


def as_written(policy: type) -> type:
    """A policy class whose methods are asked, and answer, as when it was written.

    For `postprocess_trajectory`, the other agents' batches were pairs of a policy and a batch;
    since Ray 2.1, the policy's id is before them (`evaluation/episode_v2.py`). A method that
    asks for three gets three. What `compute_actions` gives beside actions was in the batches; since
    Ray 1.2, views have to ask for it. Infos were there at each action until Ray 2.2. A state could
    be a list with an entry for each row; Ray 2.3 and later take it for nested states.
    """
    # Pickle finds no module of this name, and takes the class along.
    members: dict[str, Any] = {"__module__": "own_policies"}
    adapters = {"postprocess_trajectory": _asked_for_pairs, **dict.fromkeys(_ACTING, _acting)}
    for name, adapt in adapters.items():
        written: Any = getattr(policy, name, None)
        if _is_own(written):
            members[name] = adapt(written)
    if any(_is_own(getattr(policy, name, None)) for name in _ACTING):
        members["_get_default_view_requirements"] = _with_infos
    return type(policy.__name__, (policy,), members) if len(members) > 1 else policy


def with_settings(policy: type, settings: Mapping[str, object]) -> type:
    """A policy class that has settings in its config which Ray's algorithm has not."""

    def begin(
        self: Any, observations: object, actions: object, config: Mapping[str, Any], **more: Any
    ) -> None:
        made: Any = policy
        made.__init__(self, observations, actions, {**settings, **config}, **more)

    return type(policy.__name__, (policy,), {"__module__": "own_policies", "__init__": begin})


#: What computes actions.
_ACTING = ("compute_actions", "compute_actions_from_input_dict")


def _is_own(written: object) -> bool:
    return written is not None and written.__module__.partition(".")[0] != "ray"


def _with_infos(policy: object) -> Any:
    """Ray's default views of a policy, infos for acting among them."""
    from ray.rllib.policy.policy import Policy

    views = Policy._get_default_view_requirements(policy)
    views["infos"].used_for_compute_actions = True
    return views


def _acting(written: Callable[..., Any]) -> Any:
    import numpy as np
    from ray.rllib.policy.view_requirement import ViewRequirement

    @functools.wraps(written)
    def compute_actions(self: Any, *args: object, **kwargs: object) -> Any:
        found = written(self, *args, **kwargs)
        if not (isinstance(found, tuple) and len(found) == 3):
            return found
        actions, states, extras = found
        for name in extras:
            view = ViewRequirement(used_for_compute_actions=False)
            self.view_requirements.setdefault(name, view)
        states = [np.asarray(state) if isinstance(state, list) else state for state in states]
        return actions, states, extras

    return compute_actions


def _asked_for_pairs(written: Callable[..., Any]) -> Any:
    paired = _with_pairs(written)

    def postprocess_trajectory(
        self: object, batch: object, others: object = None, episode: object = None
    ) -> Any:
        try:
            return paired(self, batch, others, episode)
        except (ValueError, IndexError) as error:
            if not others or not _NOT_A_PAIR.search(str(error)):
                raise
        return written(self, batch, others, episode)

    return postprocess_trajectory


def learn_once_on_the_old_stack(algorithm: Algorithm) -> Any:
    """Samples a train batch and learns from it, on the old API stack; returns policies' metrics."""
    from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
    from ray.rllib.utils import metrics

    group, config = algorithm.env_runner_group, algorithm.config
    sampled = synchronous_parallel_sample(
        worker_set=group, max_env_steps=config.total_train_batch_size
    )
    batch = sampled.as_multi_agent()
    counters = algorithm._counters
    counters[metrics.NUM_AGENT_STEPS_SAMPLED] += batch.agent_steps()
    counters[metrics.NUM_ENV_STEPS_SAMPLED] += batch.env_steps()
    results = algorithm.env_runner.learn_on_batch(batch)
    counters[metrics.NUM_AGENT_STEPS_TRAINED] += batch.agent_steps()
    counters[metrics.NUM_ENV_STEPS_TRAINED] += batch.env_steps()
    now = {"timestep": counters[metrics.NUM_AGENT_STEPS_SAMPLED]}
    if group.num_remote_workers():
        group.sync_weights(global_vars=now)
    algorithm.env_runner.set_global_vars(now)  # schedules go by them
    return results


def torch_policy_with(base: type, name: str | None, parts: dict[str, Any]) -> type:
    """A policy class of Ray's for torch with other parts, as its `with_updates` made one."""
    parts = adapt_policy_functions(parts)
    methods = {new: parts[old] for old, new in _METHODS.items() if parts.get(old) is not None}
    if "loss" in methods and "stats_fn" not in methods:

        def stats_fn(self: object, train_batch: object) -> dict[str, Any]:
            try:
                found: dict[str, Any] = base.stats_fn(self, train_batch)  # type: ignore[attr-defined]
            except AssertionError:  # another loss need not leave what that of `base` leaves
                return {}
            return found

        methods["stats_fn"] = stats_fn
    before = [parts[n] for n in _BEFORE if parts.get(n) is not None]
    if before:

        def prepare(self: Any, *args: object, **kwargs: object) -> None:
            for function in before:
                function(self, self.observation_space, self.action_space, self.config)
            base._initialize_loss_from_dummy_batch(self, *args, **kwargs)  # type: ignore[attr-defined]

        methods["_initialize_loss_from_dummy_batch"] = prepare
    # What the base class has already would be set up twice.
    mixins = [m for m in parts.get("mixins") or () if not issubclass(base, m)]
    # Pickle finds no such module, and so takes the class along.
    members = {**methods, "__module__": "own_policies", "is_own": True}
    members["with_updates"] = classmethod(_again)
    return type(name or base.__name__, (base, *mixins), members)


def adapt_policy_functions(parts: dict[str, Any]) -> dict[str, Any]:
    """The functions of a policy so that they get what they got until Ray 1.x.

    `postprocess_fn` has the other agents' batches as pairs of a policy and a batch; since Ray 2.1,
    the policy's id is before them (`evaluation/episode_v2.py`). The model of `loss_fn` has
    `from_batch`, which it lost later: models are called with a batch themselves.
    """
    called = dict(parts)
    if (postprocess := parts.get("postprocess_fn")) is not None:
        called["postprocess_fn"] = _with_pairs(postprocess)
    if (loss := parts.get("loss_fn")) is not None:
        called["loss_fn"] = _with_from_batch(loss)
    return called


def whole_config(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a policy with all that today's policies of the old API stack read."""
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.models.catalog import MODEL_DEFAULTS

    whole = {**AlgorithmConfig().to_dict(), **defaults, **config}
    return {**whole, "model": {**MODEL_DEFAULTS, **(whole.get("model") or {})}}


def _with_pairs(postprocess: Callable[..., Any]) -> Any:
    @functools.wraps(postprocess)
    def called(
        policy: object,
        batch: object,
        others: Mapping[Any, Any] | None = None,
        episode: object = None,
    ) -> Any:
        pairs = None if others is None else {agent: given[-2:] for agent, given in others.items()}
        return postprocess(policy, batch, pairs, episode)

    return called


def _with_from_batch(loss: Callable[..., Any]) -> Any:
    @functools.wraps(loss)
    def called(policy: object, model: Any, dist_class: object, train_batch: AnyBatch) -> Any:
        if not hasattr(model, "from_batch"):
            model.from_batch = functools.partial(_from_batch, model)
        return loss(policy, model, dist_class, train_batch)

    return called


def _from_batch(model: Any, train_batch: Any, is_training: bool = True) -> Any:
    train_batch.set_training(is_training)
    return model(train_batch)


def value_after(policy: Policy, fragment: Any) -> float:
    """What is still to come after a fragment's last step, as a policy's critic says it."""
    if fragment["terminateds"][-1]:
        return 0.0
    views = policy.model.view_requirements
    return float(policy._value(**fragment.get_single_step_input_dict(views, index="last")))


def with_returns(policy: Policy, fragment: Any, after: float) -> Any:
    """Adds to a fragment what each step has earned until its end, discounted."""
    from ray.rllib.evaluation.postprocessing import compute_advantages

    no_critic = {"use_critic": False, "use_gae": False}
    return compute_advantages(fragment, after, gamma=policy.config["gamma"], **no_critic)


def begin_moving_average(policy: Policy, start: float) -> None:
    """Sets what MARWIL's loss divides advantages by, and moves."""
    import torch

    policy._moving_average_sqd_adv_norm = torch.tensor([float(start)], device=policy.device)


def _again(cls: type, /, *, name: str | None = None, **parts: object) -> type:
    return torch_policy_with(cls, name, parts)


#: What Python says where somebody takes two for three.
_NOT_A_PAIR = re.compile("not enough values to unpack|tuple index out of range")

#: What `with_updates` took → the method of `TorchPolicyV2`.
_METHODS = {
    "loss_fn": "loss",
    "stats_fn": "stats_fn",
    "postprocess_fn": "postprocess_trajectory",
    "extra_action_out_fn": "extra_action_out",
    "extra_grad_process_fn": "extra_grad_process",
    "optimizer_fn": "optimizer",
    "make_model": "make_model",
    "make_model_and_action_dist": "make_model_and_action_dist",
    "action_distribution_fn": "action_distribution_fn",
    "action_sampler_fn": "action_sampler_fn",
}
_BEFORE = ("before_init", "before_loss_init", "after_init")


def moving_mean_std() -> Any:
    """What norms the bonus of RE3 by all that it has seen."""
    from ray.rllib.utils.exploration import random_encoder

    return random_encoder._MovingMeanStd()
