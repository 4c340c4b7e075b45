"""Checkpoints of any Ray and of any author, as files that today's `Algorithm` may load."""

from __future__ import annotations

import io
import logging
import pickle
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rllib_compat.formats import layouts
from rllib_compat.formats.layouts import tree
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.neutral import spaces
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CheckpointError, CompatError, CorruptCheckpointError
from rllib_compat.ray_versions import checkpoints, configs, connectors, old_stack
from rllib_compat.runtime.episodes import EpisodeRecord
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.inference import agent_of
from rllib_compat.trainer.old_networks import has_other_modules, take_networks

if TYPE_CHECKING:
    from rllib_compat.conversion.given import Given
    from rllib_compat.trainer.trainer import Trainer

logger = logging.getLogger(__name__)

# What a checkpoint's network does not depend on, and may be any object.
_NOT_OF_THE_NETWORK = {"env", "callbacks", "env_config"}
# What env runners send home of an episode.
_RECORDS = {
    "rllib_compat.adapters.EpisodeRecord": lambda attributes: EpisodeRecord(**attributes),
}
# Functions that say which policies learn, and which of them an agent has (env runners of the oldest
# supported Rays save that one); the trainer has its own.
_CODE = {"should_module_be_updated", "agent_to_module_mapping_fn"}
# What of a policy's state is data that its training goes on from.
_OLD_STACK = (
    "weights",
    "global_timestep",
    "num_grad_updates",
    "_optimizer_variables",
    "_exploration_state",
)


def restore_old_stack(path: Path, trainer: Trainer) -> None:
    """Makes a trainer on the old API stack go on from a checkpoint of that stack.

    Weights, optimizers, exploration, filters and counters are carried over; functions are not.

    Raises:
        CheckpointError: It is none of the old API stack's folders of Ray 2.x, or holds code where
            data should be.
    """
    budget = Budget()
    folder = Folder(path, budget)
    states = {
        inner.name: f"policies/{inner.name}/policy_state.pkl"
        for inner in folder.folders("policies")
    }
    if not folder.has("algorithm_state.pkl") or not all(map(folder.has, states.values())):
        raise CheckpointError(
            "It is not a folder that the old API stack of Ray 2.x wrote with pickle; only Ray "
            "could read it, and would run whatever is in the files.",
            where=str(path),
            fix="If you own the files and trust them, say so: restore(path, trusted=True).",
        )
    checkpoint = layouts.read(path, budget)
    policies = {}
    for policy, file in states.items():
        state = folder.pickle(file)
        state = {name: state[name] for name in _OLD_STACK if name in state}
        policies[policy] = tree.as_data(state, file, budget)
    counters = folder.pickle("algorithm_state.pkl").get("counters") or {}
    old_stack.set_state_of_old_stack(
        trainer.algorithm,
        policies=policies,
        filters={
            policy.old_id: [
                (stat.count, stat.mean, stat.m2) for stat in policy.observation_filter.stats
            ]
            for policy in checkpoint.policies.values()
            if policy.observation_filter is not None
        },
        counters=tree.as_data(counters, "algorithm_state.pkl counters", budget),
        iteration=checkpoint.counters.iteration or 0,
    )


def unpack(saved: bytes, folder: str) -> None:
    """Lays down what `Trainer.save_to_object` made of a checkpoint: a zip that packs nothing.

    Raises:
        CorruptCheckpointError: It is something else, or more comes out of it than is in it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            if sum(info.file_size for info in archive.infolist()) > len(saved):
                raise zipfile.BadZipFile("more would come out of it than is in it")
            archive.extractall(folder)  # zipfile keeps members inside
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, zlib.error) as error:
        raise CorruptCheckpointError(
            f"These are not the bytes of a checkpoint: {error}.",
            where="restore_from_object",
            fix="Give what `save_to_object` returned.",
        ) from error


@contextmanager
def as_todays(path: Path, trainer: Trainer, *, trusted: bool) -> Iterator[Path]:
    """The path of a tree that was written in this process, and lives as long as the context.

    Ray unpickles what it is given. So it never gets the files of a checkpoint, but new ones with
    the data that this package has read in them; code is not carried over.

    Args:
        path: A checkpoint of any Ray.
        trainer: Who restores it; as ever, its config counts, not that of the checkpoint.
        trusted: Whether Ray may load the files themselves, and run what is in them.

    Raises:
        CheckpointError: The checkpoint holds something that only Ray could load.
    """
    held = coefficients.saved(path)
    if trusted:
        yield path
        coefficients.take(trainer.algorithm, held)
        return
    from rllib_compat.conversion.convert import convert, prepare

    budget = Budget()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "checkpoint"
        if _is_of_this_ray(path, budget):
            states = _states(path, budget)
            if has_other_modules(trainer, _modules(states), path):
                known = prepare(layouts.read(path, Budget()), _known_to(trainer))
                take_networks(trainer, known.checkpoint, known.networks)
            _write_states(states, path, target, trainer)
        else:
            converted = Path(folder) / "converted"
            done = convert(path, converted, given=_known_to(trainer), budget=budget)
            held = coefficients.of_old(done.checkpoint)
            take_networks(trainer, done.checkpoint, done.networks)
            # Its mapping of agents to policies is not the trainer's; Ray 2.40 would take it.
            _write_states(_states(converted, Budget()), path, target, trainer)
        with _told_by_ray(path):
            yield target
        coefficients.take(trainer.algorithm, held)


@contextmanager
def _told_by_ray(path: Path) -> Iterator[None]:
    """Turns what Ray says of states that are not whole, or not this trainer's, into our error."""
    try:
        yield
    except CompatError:
        raise
    except Exception as error:
        raise CorruptCheckpointError(
            f"Ray can't restore it: {type(error).__name__}: {str(error)[:300]}.",
            where=str(path),
            fix="Either a file of the checkpoint is missing or damaged, or it is of another "
            "network than this trainer's config describes.",
        ) from error


def _is_of_this_ray(path: Path, budget: Budget) -> bool:
    """Whether a folder is a tree of the installed Ray's format; others have to be converted."""
    if not tree.is_tree(path):
        return False
    metadata = Folder(path, budget).try_side_file("rllib_checkpoint.json")
    version = metadata.get("checkpoint_version") if isinstance(metadata, dict) else None
    return bool(version == checkpoints.writes_checkpoint_version())


def _states(path: Path, budget: Budget) -> dict[str, Any]:
    return tree.read_states(path, _RECORDS, unless_code=_CODE, budget=budget)


def _modules(states: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The state of each module among those of a tree."""
    parts = {name: PurePosixPath(name).parts for name in states if name.startswith(f"{MODULES}/")}
    return {part[3]: states[name] for name, part in parts.items() if len(part) > 4}


def _write_states(states: Mapping[str, Any], path: Path, target: Path, trainer: Trainer) -> None:
    """Writes the states of a tree anew, as pickles of plain data."""
    unknown = _modules(states).keys() - set(_policies(trainer))
    if unknown:
        logger.warning(
            "%s has policies that the trainer does not have: %s. They are left out; to restore "
            "them, call trainer.add_policy() first.",
            path,
            ", ".join(sorted(unknown)),
        )
    for name, data in states.items():
        state = checkpoints.state_to_restore(data)
        folder = target / PurePosixPath(name).parent
        folder.mkdir(parents=True, exist_ok=True)
        for file in checkpoints.state_files(PurePosixPath(name).name):
            (folder / file).write_bytes(pickle.dumps(state))


def _known_to(trainer: Trainer) -> Given:
    """What the trainer can tell about a checkpoint that was made with its config."""
    from rllib_compat.conversion.given import Given

    config = trainer.algorithm.config
    observation, action = config.observation_space, config.action_space
    if acts := trainer.algorithm.env_runner_group is not None:
        runner = trainer.algorithm.env_runner
        pipeline = connectors.env_to_module(runner)
        observation, action = pipeline.input_observation_space, pipeline.input_action_space
    by_policy = {"default_policy": (observation, action)}
    if acts and configs.is_multi_agent(config):
        agents = {policy: agent_of(runner, policy) for policy in _policies(trainer)}
        by_policy = {p: (observation[agent], action[agent]) for p, agent in agents.items()}
    records = {
        policy: tuple(spaces.from_object(space) for space in pair)
        for policy, pair in by_policy.items()
    }
    return Given(
        algorithm=trainer.translation.legacy_algorithm,
        config={
            key: value
            for key, value in trainer.translation.legacy_config.items()
            if key not in _NOT_OF_THE_NETWORK
        },
        observation_spaces={p: obs for p, (obs, _) in records.items() if obs is not None},
        action_spaces={p: act for p, (_, act) in records.items() if act is not None},
    )


def _policies(trainer: Trainer) -> list[str]:
    return list(trainer.get_weights())
