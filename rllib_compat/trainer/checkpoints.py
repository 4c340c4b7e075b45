"""A trainer's checkpoints: written for the installed Ray, loaded from any Ray, and as bytes."""

from __future__ import annotations

import io
import logging
import operator
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import registry
from rllib_compat.config import era
from rllib_compat.conversion.given import Given
from rllib_compat.formats import layouts
from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.layouts import tree
from rllib_compat.formats.layouts.folder import Folder, as_mapping
from rllib_compat.formats.layouts.search import newest_in, whole_of
from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.formats.manifest import require_whole, why_not_ours, write_manifest
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.formats.stores import source_path, target_directory
from rllib_compat.formats.zip_errors import DAMAGED_ZIP
from rllib_compat.networks.named import BUFFERS
from rllib_compat.networks.optimizers import eager_values
from rllib_compat.neutral import spaces
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import (
    CheckpointError,
    CompatError,
    CorruptCheckpointError,
    MissingFileError,
)
from rllib_compat.ray_versions import (
    algorithms,
    checkpoints,
    connectors,
    learners,
    metrics,
    old_stack,
    training_steps,
)
from rllib_compat.ray_versions import configs as ray_configs
from rllib_compat.ray_versions import modules as ray_modules
from rllib_compat.runtime.results import EpisodeRecord
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.build import AlgorithmBuilder
from rllib_compat.trainer.inference import agent_of
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    from ray.rllib.core.learner import Learner

    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.plan import Plan
    from rllib_compat.networks import AnyNetwork
    from rllib_compat.neutral.checkpoint import LegacyCheckpoint


class Checkpoints:
    """Writes and loads checkpoints of a running algorithm."""

    def __init__(self, running: RunningAlgorithm, builder: AlgorithmBuilder) -> None:
        self._running = running
        self._restorer = Restorer(running, builder)

    def write(self, folder: str) -> None:
        """Writes a checkpoint of the installed Ray, for `Algorithm.from_checkpoint`, too."""
        folder = str(local_path(folder).absolute())
        with checkpoints.path_for_ray(folder) as path:
            self._running.algorithm.save_checkpoint(path)
        coefficients.save(self._running.algorithm, Path(folder))
        for callbacks in self._running.adapters:
            callbacks.fire_checkpoint_saved(callbacks.owner, folder)
        write_manifest(Path(folder))

    def load(self, folder: str, *, trusted: bool) -> None:
        """Loads a checkpoint of any Ray; the algorithm keeps the config that it was built from.

        Args:
            folder: Its path.
            trusted: Whether Ray may load the files themselves, and run what is in them.

        Raises:
            CheckpointError: It can't be restored; the algorithm is as it was.
        """
        folder = str(path_in_code(folder))
        reading = self._restorer.read(Path(folder), trusted=trusted)
        with reading as restore, self._running.all_or_nothing(), explain_errors(Path(folder)):
            restore()
            algorithm = self._running.algorithm
            metrics.mark_steps_as_counted(algorithm)
            if algorithm.learner_group is not None:
                algorithm.learner_group.foreach_learner(learners.take_learning_rates_of_config)
            self._running.send_weights()
        for callbacks in self._running.adapters:
            callbacks.fire_checkpoint_restored(callbacks.owner, folder)


class SavedCheckpoint(str):
    """The path of a checkpoint, with the attributes of what `save` returns since Ray 2.7.

    Attributes:
        metrics: The last result.
    """

    metrics: Mapping[str, Any]
    __slots__ = ("metrics",)

    @property
    def checkpoint(self) -> Any:
        """The checkpoint as Ray's object."""
        from ray.tune import Checkpoint

        return Checkpoint(str(self))


def named_as_by_code(folder: str, metrics: Mapping[str, Any] | None = None) -> str:
    """The path of a checkpoint as the user's code knows it: until Ray 1.13, of a file in it."""
    file = Path(folder, "algorithm_state.pkl")
    if era.is_code_until("1.13.0"):
        return str(file) if file.is_file() else folder
    saved = SavedCheckpoint(folder)
    saved.metrics = dict(metrics or {})
    return saved


def path_in_code(path: str | Path) -> Path:
    """The checkpoint that the user's code means by a path.

    Since Ray 2.7, `save(FOLDER)` wrote into the folder itself, and `restore(FOLDER)` read it.
    """
    found = whole_of(source_path(path))
    return found if era.is_code_until("1.13.0") else newest_in(found)


def save_whole(place: str, write: Callable[[str], object]) -> None:
    """Lets `write` fill a checkpoint's folder, which is complete in the end, or not there.

    Args:
        place: Its path or address.
        write: Writes into a local folder.

    An existing folder is replaced if a trainer has saved all that it contains. Otherwise, `write`
    adds to it, and other files stay; its manifest is written last.
    """
    if not is_address(place) and Path(place).is_dir() and why_not_ours(Path(place)):
        with disk_errors(place):
            write(place)
        return
    with target_directory(place, overwrite=True, why_not=why_not_ours) as folder:
        write(str(folder))


def pack(write: Callable[[str], object]) -> bytes:
    """The files that `write` puts into a folder, as bytes."""
    with tempfile.TemporaryDirectory() as folder, io.BytesIO() as file:
        write(folder)
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(Path(folder).rglob("*")):
                archive.write(path, path.relative_to(folder))
        return file.getvalue()


def unpack(saved: bytes, folder: str) -> None:
    """Writes the files that `pack` returned as bytes: a zip without compression.

    Raises:
        CorruptCheckpointError: It is something else, or its files are larger than the zip.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            if sum(info.file_size for info in archive.infolist()) > len(saved):
                raise zipfile.BadZipFile("its files would be larger than the zip")
            archive.extractall(folder)  # zipfile keeps members inside
    except (OSError, *DAMAGED_ZIP) as error:
        raise CorruptCheckpointError(
            f"These are not the bytes of a checkpoint: {error}.",
            where="restore_from_object",
            fix="Give what `save_to_object` returned.",
        ) from error


logger = logging.getLogger(__name__)

# Keys that a checkpoint's network does not depend on; their values may be any object.
_NOT_OF_THE_NETWORK = {"env", "callbacks", "env_config"}
# Records of episodes that env runners return.
_RECORDS = {
    "rllib_compat.adapters.EpisodeRecord": lambda attributes: EpisodeRecord(**attributes),
}
# Functions that say which policies learn, and which of them an agent has (env runners of the oldest
# supported Rays save that one); the trainer has its own.
_CODE = {"should_module_be_updated", "agent_to_module_mapping_fn"}
#: Keys of a module's model config that determine its outputs, and that its arrays may not show.
_NOT_IN_ARRAYS = ("graph", "fcnet_hiddens", "head_fcnet_hiddens", "critics", "times")
#: Defaults of these keys; the others may have any value if a model config lacks them.
_DEFAULTS = {"times": 1.0}


class Restorer:
    """Puts checkpoints into a running algorithm.

    As in old Rays, the trainer keeps its config, whatever the checkpoint has.
    """

    def __init__(self, running: RunningAlgorithm, builder: AlgorithmBuilder) -> None:
        self._running = running
        self._builder = builder

    @contextmanager
    def read(self, path: Path, *, trusted: bool) -> Iterator[Callable[[], None]]:
        """Reads and checks a checkpoint; the algorithm stays as it is.

        Args:
            path: A checkpoint of any Ray.
            trusted: Whether Ray may load the files themselves, and run what is in them.

        Yields:
            A function that makes the algorithm continue from it.

        Raises:
            CheckpointError: It is incomplete, or contains something that only Ray could load.
        """
        if path.is_dir():
            require_whole(path)
        algorithm = self._running.algorithm
        if not algorithm.config.enable_rl_module_and_learner and not trusted:
            yield partial(old_stack.set_state_of_old_stack, algorithm, **_read_old_stack(path))
        elif trusted:
            yield partial(self._restore_trusted, path, coefficients.load(path))
        else:
            with tempfile.TemporaryDirectory() as folder:
                yield self._read_data(path, Path(folder))

    def _restore_trusted(self, path: Path, held: coefficients.Coefficients) -> None:
        with algorithms.restores_offline(), checkpoints.path_for_ray(path) as place:
            self._running.algorithm.load_checkpoint(place)
        coefficients.restore(self._running.algorithm, held)

    def _read_data(self, path: Path, folder: Path) -> Callable[[], None]:
        """Writes a checkpoint's data into files for Ray; returns a function that loads them."""
        with self._explains_another_algorithm(path):
            return self._read_networks(path, folder)

    @contextmanager
    def _explains_another_algorithm(self, path: Path) -> Iterator[None]:
        """Names the algorithm of a checkpoint whose arrays do not fit the trainer's networks."""
        try:
            yield
        except CheckpointError as error:
            own = self._builder.translation.legacy_algorithm
            saved = layouts.read(path, Budget()).algorithm
            if saved is None or registry.of(saved).reader == registry.of(own).reader:
                raise
            raise CheckpointError(
                f"It is a checkpoint of {saved}, and the trainer is one of {own}: their networks "
                "differ.",
                where=str(path),
                fix=f"restore it with a trainer of {saved}, or continue it by rllib_compat.load()",
            ) from error

    def _read_networks(self, path: Path, folder: Path) -> Callable[[], None]:
        from rllib_compat.conversion.convert import convert, prepare

        held, budget = coefficients.load(path), Budget()
        known: Plan | Conversion | None = None
        if _is_of_this_ray(path, budget):
            states = _states(path, budget)
            saved = layouts.read(path, Budget())  # an error if a component has no state
            if self._has_other_modules(_modules(states), saved):
                known = prepare(saved, self._known())
        else:
            known = convert(path, folder / "converted", given=self._known(), budget=budget)
            held = coefficients.from_checkpoint(known.checkpoint)
            # Its mapping of agents to policies is not the trainer's; Ray 2.40 would take it.
            states = _states(folder / "converted", Budget())
        self._write(states, path, folder / "checkpoint")

        def restore() -> None:
            if known is not None:
                self._take_networks(known.checkpoint, known.networks)
            with algorithms.restores_offline():
                self._running.algorithm.load_checkpoint(str(folder / "checkpoint"))
                operator.index(self._running.algorithm.iteration)  # Ray accepts any type
            coefficients.restore(self._running.algorithm, held)

        return restore

    def _write(self, states: Mapping[str, object], path: Path, target: Path) -> None:
        """Writes the states of a tree as pickles of plain data."""
        unknown = _modules(states).keys() - self._weights().keys()
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

    def _known(self) -> Given:
        """What the trainer knows about a checkpoint that was made with its config."""
        algorithm = self._running.algorithm
        config = algorithm.config
        observation, action = config.observation_space, config.action_space
        if acts := algorithm.env_runner_group is not None:
            runner = algorithm.env_runner
            pipeline = connectors.env_to_module(runner)
            observation, action = pipeline.input_observation_space, pipeline.input_action_space
        by_policy = {"default_policy": (observation, action)}
        if acts and ray_configs.is_multi_agent(config):
            agents = {policy: agent_of(runner, policy) for policy in self._weights()}
            by_policy = {p: (observation[agent], action[agent]) for p, agent in agents.items()}
        records = {
            policy: tuple(spaces.from_object(space) for space in pair)
            for policy, pair in by_policy.items()
        }
        translation = self._builder.translation
        return Given(
            algorithm=translation.legacy_algorithm,
            config={
                key: value
                for key, value in translation.legacy_config.items()
                if key not in _NOT_OF_THE_NETWORK
            },
            observation_spaces={p: obs for p, (obs, _) in records.items() if obs is not None},
            action_spaces={p: act for p, (_, act) in records.items() if act is not None},
        )

    def _has_other_modules(
        self, states: Mapping[str, Mapping[str, Any]], saved: LegacyCheckpoint
    ) -> bool:
        """Whether a module of the algorithm differs from that of a checkpoint of the installed Ray.

        Args:
            states: The state of each module in it.
            saved: The checkpoint.
        """
        own = self._weights()
        both = own.keys() & states.keys()
        # Both may have no weights: Random's has none.
        if any(states[name] and _shapes(own[name]) != _shapes(states[name]) for name in both):
            return True
        if not any(training_steps.foreach_learner(self._running.algorithm, _has_ours)):
            return False  # modules of Ray's, whose config is that of the trainer
        configs = self._model_configs()
        return not all(
            _agree(saved.policies[name].extra.get("module_config", {}), configs[name])
            for name in both & saved.policies.keys()
        )

    def _take_networks(
        self, checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
    ) -> None:
        """Rebuilds the algorithm around old networks, if its modules are others.

        Policies that the checkpoint does not have keep the modules of the trainer's config.
        """
        own = self._weights()
        networks = {name: network for name, network in networks.items() if name in own}
        configs = self._model_configs()
        if all(
            _shapes(network.module_state()) == _shapes(own[name])
            and _agree(network.target.model_config, configs[name])
            for name, network in networks.items()
        ):
            return
        from rllib_compat.conversion.write.checkpointable import adapt_config  # it needs torch

        policies = [checkpoint.policies[name] for name in networks]
        config = self._running.algorithm.config.copy(copy_frozen=False)
        others = own.keys() - networks.keys()
        adapt_config(config, checkpoint.with_policies(policies), networks, others=others)
        self._builder.name_networks(config, converted=networks.keys())
        self._running.replace(config)

    def _weights(self) -> dict[str, Mapping[str, Any]]:
        return dict(self._running.algorithm.get_weights())

    def _model_configs(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]]
        found, *_ = training_steps.foreach_learner(
            self._running.algorithm, ray_modules.model_configs
        )
        return found


def _read_old_stack(path: Path) -> dict[str, Any]:
    """The arguments of `set_state_of_old_stack`, from a checkpoint of that stack.

    Weights, optimizers, exploration, filters and counters are carried over; functions are not.

    Raises:
        CheckpointError: It is no folder of the old API stack of Ray 2.x, is incomplete, or
            contains code where data should be.
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
        state = {name: state[name] for name in old_stack.POLICY_STATE if name in state}
        if (values := eager_values(state.get("_optimizer_variables"))) is not None:
            state["_optimizer_variables"] = values
        policies[policy] = tree.as_data(state, file, budget)
    whole = as_mapping(folder.pickle("algorithm_state.pkl"))
    listed = as_mapping(whole.get("worker")).get("policy_ids") or ()
    if missing := {name for name in listed if isinstance(name, str)} - policies.keys():
        raise MissingFileError(
            "A policy has no state.",
            where=str(path / "policies" / min(missing)),
            fix="Copy the checkpoint again, with all its files.",
        )
    return {
        "policies": policies,
        "filters": {
            policy.old_id: [
                (stat.count, stat.mean, stat.m2) for stat in policy.observation_filter.stats
            ]
            for policy in checkpoint.policies.values()
            if policy.observation_filter is not None
        },
        "counters": tree.as_data(whole.get("counters") or {}, "algorithm_state.pkl", budget),
        "iteration": checkpoint.counters.iteration or 0,
    }


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turns Ray's errors about incomplete states, or those of another network, into our error."""
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


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(array) for name, array in arrays.items() if name not in BUFFERS}


def _has_ours(learner: Learner) -> bool:
    """Whether any of a learner's modules is one of this package."""
    modules = (learner.module[name].unwrapped() for name in learner.module.keys())  # noqa: SIM118 - it is no dict
    return any(type(module).__module__.startswith("rllib_compat.") for module in modules)


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two model configs have the same layers in one order, as far as they name them."""

    def value(config: Mapping[str, Any], key: str, default: Mapping[str, Any]) -> Any:
        return config.get(key, _DEFAULTS.get(key, default.get(key)))

    # An optimizer's state goes by the places of the arrays.
    orders = [list(config["shapes"]) for config in (one, other) if "shapes" in config]
    same_order = orders[:1] * len(orders) == orders
    return same_order and all(value(one, k, other) == value(other, k, one) for k in _NOT_IN_ARRAYS)
