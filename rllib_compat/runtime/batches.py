"""Legacy sample batches: of episodes, with what old policies added, and written back to them.

A batch is a copy. After a callback, `write_back` compares it with the original, and copies the
changes to the episode, which the learners get. `postprocess` computes what the policies of each
algorithm did (`postprocess_trajectory` of Ray 0.5 – 2.x). Callbacks add steps of their own with
`new_batch_builder()` and `add_extra_batch()`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat.neutral.errors import CompatError, GoneError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import episodes, old_stack
from rllib_compat.ray_versions.types import (
    AlgorithmConfig,
    AnyBatch,
    MultiAgentEpisode,
    SingleAgentEpisode,
)
from rllib_compat.runtime.offline.episodes import STEPS, episodes_of_batch
from rllib_compat.runtime.policy_inputs import flatten_state
from rllib_compat.runtime.policy_mapping import ONLY_AGENT, ONLY_POLICY

# Columns whose changes cannot reach the learners.
_COMPUTED_BY_LEARNERS = ("advantages", "value_targets")
_ENDS = ("terminateds", "truncateds")
_GIVEN = (*_ENDS, "infos", "t", "eps_id", "agent_index", "unroll_id")


def agent_parts(chunk: Any) -> dict[Any, Any]:
    """Returns the non-empty single-agent episodes of a chunk, by agent."""
    if hasattr(chunk, "agent_episodes"):
        return {agent: part for agent, part in chunk.agent_episodes.items() if len(part)}
    return {ONLY_AGENT: chunk} if len(chunk) else {}


def sample_batch(episode: SingleAgentEpisode, agent_index: int = 0) -> Any:
    """Converts a single-agent episode to a `SampleBatch` of new arrays.

    Args:
        episode: A `SingleAgentEpisode`, with lists or with arrays.
        agent_index: The index of the agent in its environment.

    Returns:
        The columns of Ray 1.x (`policy/sample_batch.py`), without those computed from others
        (advantages, previous actions); `batch["dones"]` works, too.
    """
    import tree
    from ray.rllib.policy.sample_batch import SampleBatch

    length = len(episode)
    ends = np.zeros((2, length), bool)
    ends[:, -1] = episode.is_terminated, episode.is_truncated
    observations = _arrays(episode.get_observations())
    computed = {
        name: _arrays(episode.get_extra_model_outputs(name))
        for name, values in episode.extra_model_outputs.items()
        if len(values)
    }
    if "action_logp" in computed:
        computed["action_prob"] = np.exp(computed["action_logp"])
    return SampleBatch(
        {
            "obs": tree.map_structure(lambda column: column[:-1].copy(), observations),
            "new_obs": tree.map_structure(lambda column: column[1:].copy(), observations),
            "actions": _arrays(episode.get_actions()),
            "rewards": np.array(episode.get_rewards(), np.float32),
            "terminateds": ends[0],
            "truncateds": ends[1],
            "infos": _objects(episode.get_infos(slice(1, length + 1))),
            "t": np.arange(episode.t_started, episode.t),
            # A number, as in old Rays: their readers take no strings.
            "eps_id": np.full(length, zlib.crc32(str(episode.id_).encode())),
            "unroll_id": np.full(length, episode.t_started),
            "agent_index": np.full(length, agent_index),
            **computed,
        }
    )


def write_back(
    episode: SingleAgentEpisode, batch: Mapping[str, Any], before: Mapping[str, Any]
) -> None:
    """Copies a callback's changes of a batch to the episode.

    Raises:
        GoneError: A change has no effect: of advantages, which learners compute from rewards, or
            of values that the environment has returned.
    """
    for name in batch:
        if name in before and _equal(batch[name], before[name]):
            continue
        if name in _COMPUTED_BY_LEARNERS:
            raise GoneError(
                f"The column `{name}` cannot be set: learners compute it after all callbacks.",
                where=f"postprocessed_batch[{name!r}]",
                fix="change the rewards, from which it is computed; or pass api_stack='old'",
            )
        if name in _GIVEN:
            column = f"{name}` (of `dones`)" if name in _ENDS else f"{name}`"
            raise GoneError(
                f"The column `{column} cannot be set: the new API stack keeps the environment's.",
                where=f"postprocessed_batch[{name!r}]",
                fix="change it in the environment; or pass api_stack='old'",
            )
        _set(episode, name, batch[name])


def read_only(batch: dict[str, Any]) -> Any:
    """Returns a read-only view of a batch."""
    import tree

    def lock(column: object) -> Any:
        view = np.asarray(column).view()
        view.flags.writeable = False
        return view

    return type(batch)({name: tree.map_structure(lock, batch[name]) for name in batch})


@frozen
class Collector:
    """The collected steps of one policy.

    Attributes:
        batches: A batch for each agent.
        agent_steps: The number of their steps.
    """

    batches: list[Any]
    agent_steps: int


@frozen
class CollectedSteps:
    """An episode's `batch_builder`: a read-only view of the steps since the last batch.

    Attributes:
        policy_collectors: The collected steps by policy.
        env_steps: The number of environment steps.
        agent_steps: The number of steps of all agents.
    """

    policy_collectors: dict[str, Collector]
    env_steps: int
    agent_steps: int


def batch_builder_of(
    chunk: SingleAgentEpisode | MultiAgentEpisode, policy_for: Callable[[Any], str]
) -> CollectedSteps:
    """Converts a chunk to the collectors of Ray 1.3 – 2.1."""
    batches: dict[str, list[Any]] = {}
    for index, (agent, part) in enumerate(agent_parts(chunk).items()):
        batch = sample_batch(part, index)
        # Truncated episodes were `done`, too.
        batch["terminateds"] |= batch["truncateds"]
        batches.setdefault(policy_for(agent), []).append(read_only(batch))
    collectors = {
        policy: Collector(found, sum(map(len, found))) for policy, found in batches.items()
    }
    steps = sum(collector.agent_steps for collector in collectors.values())
    return CollectedSteps(collectors, len(chunk), steps)


@frozen
class _Piece:
    policy: str
    episode: Any
    start: int
    before: Any


#: Since this Ray, batches have only the columns that a policy needs: no previous steps.
_VIEW_REQUIREMENTS = Version("1.0")
#: Since this Ray, `dones` are booleans instead of integers.
_BOOLEANS = Version("1.1")


def rollout_batch(
    chunks: list[Any], policies: Mapping[str, Any], ray: Version | None = None
) -> Any:
    """Converts an env runner's sample to the batch of an old worker.

    Without a Ray, its columns are those of the last legacy one.

    Returns:
        A `SampleBatch`, or with several agents a `MultiAgentBatch` by policy.
    """
    from ray.rllib.policy.sample_batch import concat_samples

    old_stack.add_legacy_batch_names()
    by_policy: dict[str, list[Any]] = {}
    for chunk in chunks:
        parts = agent_parts(chunk)
        ids = {agent: _policy_of(chunk, agent) for agent in parts}
        batches = {a: sample_batch(part, index) for index, (a, part) in enumerate(parts.items())}
        for agent, batch in batches.items():
            policy = policies[ids[agent]]
            _add_values(batch, policy, parts[agent])
            if ray is not None and ray < _VIEW_REQUIREMENTS:
                _add_previous_steps(batch, parts[agent])
            elif ray is not None and ray < _BOOLEANS:
                batch["terminateds"] = batch["terminateds"].astype(np.int32)
            others = {a: (policies[ids[a]], b) for a, b in batches.items() if a != agent}
            made = policy.postprocess_trajectory(batch, others, None)
            by_policy.setdefault(ids[agent], []).append(made)
    return _joined(chunks, {policy: concat_samples(made) for policy, made in by_policy.items()})


def _policy_of(chunk: Any, agent: object) -> str:
    return str(chunk.module_for(agent)) if hasattr(chunk, "agent_episodes") else ONLY_POLICY


def _joined(chunks: list[Any], batches: dict[str, Any]) -> Any:
    """Returns the batch of a single policy, or a `MultiAgentBatch`, as an old worker did."""
    from ray.rllib.policy.sample_batch import MultiAgentBatch, concat_samples

    if any(hasattr(chunk, "agent_episodes") for chunk in chunks):
        return MultiAgentBatch(batches, sum(map(len, chunks)))
    return batches[ONLY_POLICY] if batches else concat_samples([])


def _add_values(batch: dict[str, Any], policy: Any, episode: SingleAgentEpisode) -> None:
    """Adds the critic's values, which env runners do not compute.

    With a recurrent state, the state before each step is added, too.
    """
    given: tuple[Any, ...] = ()
    if policy.is_recurrent():
        steps = {name: batch[name] for name in ("actions", "rewards")}
        _add_previous_steps(steps, episode)
        states = _add_states(batch, policy, episode)
        given = states, steps["prev_actions"], steps["prev_rewards"]
    extras = policy.compute_actions(batch["obs"], *given, explore=False)[2]
    batch.update({name: extras[name] for name in ("vf_preds",) if name in extras})


def _add_states(batch: dict[str, Any], policy: Any, episode: SingleAgentEpisode) -> list[Any]:
    """Adds the flat states before and after each step; returns those before."""
    first, last = policy.get_initial_state(), _before(episode.extra_model_outputs["state_out"])
    if last is not None:
        first = [np.asarray(part) for part in flatten_state(last, batched=False)]
    after = flatten_state(batch.pop("state_out"))
    before = [np.concatenate([f[None], out[:-1]]) for f, out in zip(first, after, strict=True)]
    for name, states in (("state_in", before), ("state_out", after)):
        batch.update({f"{name}_{i}": np.asarray(state) for i, state in enumerate(states)})
    return before


def _before(column: Any) -> Any:
    """Returns a column's item before the first step of a chunk; None at an episode's start."""
    return column.get(-1, neg_index_as_lookback=True) if column.lookback else None


def _add_previous_steps(batch: dict[str, Any], episode: SingleAgentEpisode) -> None:
    """Adds the previous action and reward of each step; zeros before an episode's first."""
    import tree

    for name, column in (("actions", episode.actions), ("rewards", episode.rewards)):
        before = _before(column)

        def shifted(part: Any, first: object = 0) -> Any:
            moved = np.roll(part, 1, 0)
            moved[0] = first
            return moved

        given = () if before is None else (before,)
        batch[f"prev_{name}"] = tree.map_structure(shifted, batch[name], *given)


class Samples:
    """An env runner's sample, with the batch for `on_sample_end`.

    Attributes:
        batch: A `SampleBatch`, or with several agents a `MultiAgentBatch` by policy.
    """

    def __init__(self, chunks: list[Any]) -> None:
        from ray.rllib.policy.sample_batch import concat_samples

        self._pieces: list[_Piece] = []
        by_policy: dict[str, list[Any]] = {}
        lengths: dict[str, int] = {}
        for chunk in chunks:
            for index, (agent, episode) in enumerate(agent_parts(chunk).items()):
                policy = _policy_of(chunk, agent)
                before = sample_batch(episode, index)
                start = lengths.get(policy, 0)
                self._pieces.append(_Piece(policy, episode, start, before))
                by_policy.setdefault(policy, []).append(before)
                lengths[policy] = start + len(episode)
        self._batches = {policy: concat_samples(parts) for policy, parts in by_policy.items()}
        self.batch = _joined(chunks, self._batches)

    def write_back(self) -> None:
        """Copies changes of the batch to the episodes; see `write_back`."""
        for piece in self._pieces:
            rows = piece.start, piece.start + len(piece.episode)
            write_back(piece.episode, self._batches[piece.policy].slice(*rows), piece.before)


def _arrays(column: object) -> Any:
    """Converts a column to a structure of new arrays."""
    import tree

    if isinstance(column, list):
        return tree.map_structure(lambda *items: np.array(items), *column)
    return tree.map_structure(np.array, column)


def _objects(infos: Sequence[object]) -> Any:
    column = np.empty(len(infos), object)
    column[:] = list(infos)
    return column


def _equal(one: object, other: object) -> bool:
    import tree

    if one is other:
        return True
    ones, others = tree.flatten(one), tree.flatten(other)
    return len(ones) == len(others) and all(
        a is b or (np.shape(a) == np.shape(b) and _same(np.asarray(a), np.asarray(b)))
        for a, b in zip(ones, others, strict=True)
    )


def _same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    floats = one.dtype.kind == other.dtype.kind == "f"
    return bool(np.array_equal(one, other, equal_nan=floats))


def _set(episode: SingleAgentEpisode, name: str, column: object) -> None:
    buffers = {
        "obs": (episode.observations, 0),
        "new_obs": (episode.observations, 1),
        "actions": (episode.actions, 0),
        "rewards": (episode.rewards, 0),
        **{key: (buffer, 0) for key, buffer in episode.extra_model_outputs.items()},
    }
    if name not in buffers:
        _add(episode, name, column)
        return
    import tree

    # The setters of an episode check spaces, which old environments may not fit.
    buffer, offset = buffers[name]
    steps = slice(buffer.lookback + offset, buffer.lookback + offset + len(episode))
    if isinstance(buffer.data, list):
        buffer.data[steps] = _items(column, len(episode))
    else:
        tree.map_structure(lambda old, new: old.__setitem__(steps, new), buffer.data, column)


def _items(column: object, length: int) -> list[Any]:
    import tree

    return [tree.map_structure(lambda c, i=i: c[i], column) for i in range(length)]


def _add(episode: SingleAgentEpisode, name: str, column: object) -> None:
    """Adds a callback's own column, which learners get like outputs of the module."""
    from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

    lookback = episode.actions.lookback
    values = _items(np.asarray(column), len(episode))
    buffer = InfiniteLookbackBuffer([values[0]] * lookback + values, lookback=lookback)
    if not isinstance(episode.rewards.data, list):
        episodes.to_numpy(buffer)
    episode.extra_model_outputs[name] = buffer


_WHERE = "episode.add_extra_batch()"


class BatchBuilder:
    """Collects steps of agents, and builds a batch for each policy (Ray 0.5 – 1.13).

    Args:
        policies: The policies by id; each postprocesses the steps of its agents.

    Attributes:
        count: The number of environment steps, which the caller sets.
    """

    def __init__(self, policies: Mapping[str, Any]) -> None:
        self._policies = policies
        self._rows: dict[tuple[Any, str], list[dict[str, Any]]] = {}
        self._made: dict[str, list[Any]] = {}
        self.count = 0

    def total(self) -> int:
        """The number of agent steps that are not in a batch yet."""
        return sum(map(len, self._rows.values()))

    def has_pending_agent_data(self) -> bool:
        """Whether `total()` is not 0."""
        return bool(self._rows)

    def add_values(self, agent_id: object, policy_id: str, **values: object) -> None:
        """Adds a step of an agent, with its columns as values: `obs`, `actions`, `rewards`, …."""
        self._rows.setdefault((agent_id, policy_id), []).append(values)

    def postprocess_batch_so_far(self, episode: object = None) -> None:
        """Lets the policies postprocess the steps that were added since the last call."""
        from ray.rllib.policy.sample_batch import SampleBatch

        rows, self._rows = self._rows, {}
        batches = {}
        for (agent, policy), steps in rows.items():
            columns = {name: np.array([step[name] for step in steps]) for name in steps[0]}
            if "dones" in columns:
                columns["terminateds"] = columns.pop("dones")
            batches[agent] = policy, SampleBatch(columns)
        for agent, (policy, batch) in batches.items():
            others = {a: (self._policies[p], b) for a, (p, b) in batches.items() if a != agent}
            made = self._policies[policy].postprocess_trajectory(batch, others, episode)
            self._made.setdefault(policy, []).append(made)

    def build_and_reset(self, episode: object = None) -> Any:
        """Builds a `MultiAgentBatch` of all steps that were added, and starts a new one."""
        from ray.rllib.policy.sample_batch import MultiAgentBatch, concat_samples

        self.postprocess_batch_so_far(episode)
        made, self._made = self._made, {}
        joined = {policy: concat_samples(batches) for policy, batches in made.items()}
        steps, self.count = self.count or max(map(len, joined.values()), default=0), 0
        return MultiAgentBatch(joined, steps)


def extra_episodes(batch: AnyBatch, chunk: Any) -> list[Any]:
    """Converts an extra batch to episodes like those that an env runner samples.

    Args:
        batch: Observations, actions, rewards, `dones`, and the policy's outputs for each step.
        chunk: An episode of the env runner.

    Raises:
        GoneError: The trainer has several policies.
        CompatError: The batch lacks an output of the policy.
    """
    if hasattr(chunk, "agent_episodes"):
        raise GoneError(
            "With several policies, a batch cannot be added to the samples.",
            where=_WHERE,
            fix="add episodes in a connector instead",
        )
    (steps,) = batch.as_multi_agent().policy_batches.values()
    computed = {name for name, column in chunk.extra_model_outputs.items() if len(column)}
    columns = {name: column for name, column in steps.items() if name in computed | STEPS}
    for name in computed & {"weights_seq_no"}:
        columns[name] = np.full(steps.count, chunk.get_extra_model_outputs(name, -1))
    if lacking := sorted(computed - columns.keys()):
        raise CompatError(
            f"The batch lacks {', '.join(lacking)}.",
            where=_WHERE,
            fix="add the columns that policy.compute_actions() returns as its third value",
        )
    return episodes_of_batch(columns, _WHERE)


Array = np.ndarray[Any, np.dtype[Any]]


def advantages(
    rewards: Sequence[float],
    values: Sequence[float],
    last_value: float,
    gamma: float,
    lambda_: float,
) -> list[float]:
    """Computes the advantages of one chunk of an episode (GAE).

    Args:
        rewards: The rewards, one a step.
        values: The value of each observation; zeros without a critic.
        last_value: The value after the last step: 0 if the episode ended.
        gamma: The discount factor.
        lambda_: The weight of later steps; 1 gives the discounted return minus `values`.

    Returns:
        An advantage for each step.
    """
    found, ahead, after = [], 0.0, last_value
    for reward, value in zip(rewards[::-1], values[::-1], strict=True):
        ahead = reward + gamma * after - value + gamma * lambda_ * ahead
        found.append(ahead)
        after = value
    return found[::-1]


def postprocess(
    batch: MutableMapping[str, Any],
    config: AlgorithmConfig,
    value_after: Callable[[MutableMapping[str, Any]], float],
) -> None:
    """Adds the columns for training to one chunk of an episode, in place.

    Args:
        batch: The steps.
        config: The algorithm's config. With a critic, advantages and value targets are added, if
            the
        batch has `vf_preds`. With a replay buffer, rewards become those of `n_step` steps, and
        weights are added.
        value_after: Returns the value after the last step.
    """
    rewards = np.asarray(batch["rewards"])
    if has_advantages(config):
        critic = bool(getattr(config, "use_critic", True))
        if critic and "vf_preds" not in batch:
            return  # advantages need the critic's values
        values = np.asarray(batch["vf_preds"]) if critic else np.zeros(len(rewards))
        gae = critic and bool(getattr(config, "use_gae", True))
        lambda_, last = (float(config.lambda_), value_after(batch)) if gae else (1.0, 0.0)
        steps = advantages(rewards.tolist(), values.tolist(), last, config.gamma, lambda_)
        made = np.array(steps, np.float32)
        targets = (made + values).astype(np.float32) if critic else np.zeros_like(made)
        batch["advantages"], batch["value_targets"] = made, targets
    elif hasattr(config, "n_step"):
        if isinstance(config.n_step, int) and config.n_step > 1:
            apply_n_step(batch, config.n_step, config.gamma)
        if "weights" not in batch:
            batch["weights"] = np.ones(len(rewards), np.float32)


def has_advantages(config: AlgorithmConfig) -> bool:
    """Whether an algorithm learns from the advantages of postprocessing."""
    return hasattr(config, "use_gae") or hasattr(config, "use_critic")


def apply_n_step(batch: MutableMapping[str, Any], n_step: int, gamma: float) -> None:
    """Converts steps to transitions of `n_step` steps, in place, as for replay buffers.

    Rewards become discounted sums, and `new_obs` and `dones` those of the last of these steps.
    Transitions near the end of the batch have fewer steps, as in old Rays.
    """
    count = len(batch["rewards"])
    last = np.minimum(np.arange(count) + n_step - 1, count - 1)
    rewards = np.asarray(batch["rewards"], np.float32)
    sums = rewards.copy()
    for ahead in range(1, n_step):
        sums[: count - ahead] += np.float32(gamma**ahead) * rewards[ahead:]
    batch["rewards"] = sums
    columns = dict(batch.items())  # `batch["dones"]` is `terminateds` since Ray 2.1
    for name in {"new_obs", "dones", "terminateds", "truncateds"} & columns.keys():
        batch[name] = np.asarray(columns[name])[last]
