"""In the algorithm's process: which policies are frozen, and where their weights are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from rllib_compat.league.modules import freeze, pack, thaw
from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import configs, env_runners, leagues, training_steps
from rllib_compat.ray_versions.types import Algorithm, EnvRunnerGroup


def share_frozen(algorithm: Any, *, capacity: int | None = None, **_: object) -> None:
    """Puts frozen policies' weights into Ray's object store, once for all env runners of a node.

    A policy is frozen while `policies_to_train` leaves it out. It is enough to call this once,
    after the algorithm was built, or as a callback: `config.callbacks(on_algorithm_init=
    league.share_frozen)`, which Rays from 2.42 on take. Policies that come, go, are frozen or are
    trained again later are followed. A `compat.Trainer` calls it by itself.

    Args:
        algorithm: The algorithm, with several policies, on the new API stack.
        capacity: How many frozen policies an env runner holds at a time; it lets go of what it has
            not used for longest, which Ray may then spill to disk. None for all.

    Raises:
        CompatError: The algorithm has one policy, or is on the old API stack.
    """
    if not has_policies(algorithm):
        raise CompatError(
            "Sharing weights needs an algorithm with several policies on the new API stack.",
            where="league.share_frozen()",
            fix="set config.multi_agent(policies=…), or remove the call",
        )
    if not getattr(algorithm, "shares_frozen_policies", False):
        algorithm.shares_frozen_policies = True
        LeagueMemory(algorithm, capacity).begin()


def has_policies(algorithm: Algorithm) -> bool:
    """Whether an algorithm has several policies, on the new API stack."""
    on_new_stack = algorithm.learner_group is not None
    return on_new_stack and configs.is_multi_agent(algorithm.config)


class LeagueMemory:
    """Puts frozen policies' weights into the object store, and sends env runners references.

    Ray sends weights by `EnvRunnerGroup.sync_weights`, whoever asks for it: a training step, an
    evaluation, a policy that was added, a restore. This replaces it: it sends what is trained as
    Ray does, and of what is frozen only references.
    """

    def __init__(self, algorithm: Any, capacity: int | None) -> None:
        self._algorithm = algorithm
        self._capacity = capacity
        self._training = False
        self._versions: dict[str, Any] = {}  # what the learners' tensors were when they were put
        self._stored: dict[str, tuple[bytes, Any]] = {}  # digest and reference by policy
        self._sent: dict[int, dict[str, Any]] = {}  # references that a group has, by the group's id

    def begin(self) -> None:
        """Takes the place of Ray's methods, and shares what is frozen now."""
        algorithm = self._algorithm
        algorithm.training_step = partial(self._train, algorithm.training_step)
        leagues.after_restores(algorithm, self._resend)
        for group in filter(None, (algorithm.env_runner_group, algorithm.eval_env_runner_group)):
            self._sent[id(group)] = {}
            group.sync_weights = partial(self._sync, group.sync_weights, group)
            group.sync_weights(
                from_worker_or_learner_group=algorithm.learner_group, inference_only=True
            )

    def _train(self, step: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        self._training = True
        try:
            return step(*args, **kwargs)
        finally:
            self._training = False

    def _sync(
        self,
        send: Callable[..., None],
        group: EnvRunnerGroup,
        policies: Collection[str] | None = None,
        from_worker_or_learner_group: object = None,
        to_worker_indices: list[int] | None = None,
        inference_only: bool = False,
        **more: object,
    ) -> None:
        """What `sync_weights` does, with the same arguments."""
        answers = training_steps.foreach_learner(self._algorithm, leagues.frozen_and_trained)
        versions, trained = answers[0]
        frozen = set(versions)
        sent = self._sent[id(group)]
        self._forget(group, sent.keys() - frozen)
        source = from_worker_or_learner_group
        if source is None:  # a learner group in this process is false
            source = group.local_env_runner
        asked = frozen if policies is None else frozen.intersection(policies)
        if self._training:
            # Ray names every policy that has a metric. What is frozen has changed only if somebody
            # has written to the learners' tensors since.
            asked = {p for p in asked if versions[p] != self._versions.get(p)}
        asked |= frozen - self._stored.keys()
        self._put(source, asked, inference_only)
        self._versions.update({policy: versions[policy] for policy in asked})
        refs = {p: self._stored[p][1] for p in frozen}
        if not self._training or refs != sent or to_worker_indices is not None:
            self._send_refs(group, refs, remote_worker_ids=to_worker_indices)
        if frozen:
            policies = [p for p in trained if policies is None or p in policies]
        if policies is not None and not policies:
            return
        learners = self._algorithm.learner_group
        plain = inference_only and not more and source is learners
        if plain and env_runners.is_in_this_process(group):
            env_runners.copy_weights(learners, group, policies)
            return
        send(
            policies=policies,
            from_worker_or_learner_group=from_worker_or_learner_group,
            to_worker_indices=to_worker_indices,
            inference_only=inference_only,
            **more,
        )

    def _put(self, source: object, policies: set[str], inference_only: bool) -> None:
        """Puts the weights of policies into the object store, unless the same ones are there."""
        import ray

        if not policies:
            return
        weights = leagues.module_weights(source, sorted(policies), inference_only)
        for policy, arrays in weights.items():
            digest = _digest(arrays)
            if policy not in self._stored or self._stored[policy][0] != digest:
                self._stored[policy] = (digest, ray.put(pack(arrays)))

    def _send_refs(self, group: EnvRunnerGroup, refs: Mapping[str, Any], **to: object) -> None:
        if refs:
            env_runners.foreach_env_runner(group, partial(freeze, dict(refs), self._capacity), **to)
        self._sent[id(group)] = dict(refs)

    def _resend(self, group: EnvRunnerGroup) -> None:
        """Env runners were replaced; those that were not know it all and do nothing."""
        if id(group) in self._sent:
            self._send_refs(group, self._sent[id(group)])

    def _forget(self, group: EnvRunnerGroup, policies: Collection[str]) -> None:
        """Makes policies private again that are trained from now on, or gone."""
        if not policies:
            return
        env_runners.foreach_env_runner(group, partial(thaw, frozenset(policies)))
        for policy in policies:
            del self._sent[id(group)][policy]
            self._versions.pop(policy, None)
            if not any(policy in sent for sent in self._sent.values()):
                self._stored.pop(policy, None)


def _digest(arrays: Mapping[str, Any]) -> bytes:
    import numpy as np

    digest = hashlib.sha1(usedforsecurity=False)  # the fastest there is
    for name, array in sorted(arrays.items()):
        array = np.asarray(array)
        digest.update(f"{name} {array.dtype} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.digest()
