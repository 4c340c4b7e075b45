"""What a checkpoint does not hold is given, found around it, or asked for.

A v0.1 checkpoint has no algorithm, no config and mostly no spaces. Each of them is taken from the
first source that has it, in this order: what the caller gave; the checkpoint itself; the trial's
params; the environment, where gymnasium offers one of that name; the weights, where they leave
only one answer. The report tells which it was. What is found nowhere is asked for, not guessed.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rllib_compat import registry
from rllib_compat.config.algorithms import find_algorithm
from rllib_compat.convert.inert import without_code
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import ConfigError, MissingInformationError
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Space

#: The policy of a single-agent training.
SINGLE_AGENT_IDS = ("default_policy",)

#: What a policy was called before; callers may use either name.
_OLD_IDS = {"default_policy": ("default",)}

_TRIAL = re.compile(r"(?P<algorithm>[A-Z][A-Za-z0-9]*)_(?P<env>[A-Za-z0-9]+-v\d+)_")
_CLASS_OF_POLICY = re.compile(r"([A-Z][A-Za-z0-9]*?)(TF|Torch|Jax)?(Eager)?(Policy|PolicyGraph)")


@dataclass(frozen=True)
class Given:
    """What the caller knows about a checkpoint that the checkpoint does not tell.

    Attributes:
        algorithm: Its name (`PPO`).
        config: The trainer's config; replaces what was found.
        env: The environment's name.
        observation_spaces: By policy id; the key None stands for every policy.
        action_spaces: Likewise.
        model: The RLModule (`module:Class`) that takes the weights of a custom model. It is
            imported and built.
        weights_map: The module's name for each array of the custom model, where they differ.
    """

    algorithm: str | None = None
    config: Mapping[str, Any] | None = None
    env: Any = None
    observation_spaces: Mapping[str | None, Space] = field(default_factory=dict)
    action_spaces: Mapping[str | None, Space] = field(default_factory=dict)
    model: str | None = None
    weights_map: Mapping[str, str] = field(default_factory=dict)


def complete(checkpoint: LegacyCheckpoint, given: Given) -> None:
    """Fills in algorithm, config and spaces; what was derived goes into its findings.

    Raises:
        MissingInformationError: The algorithm, or a config to read the network from, was found
            nowhere. (A missing space is no error yet: see `require_spaces`.)
    """
    if given.config is not None:
        checkpoint.config = dict(given.config)
        checkpoint.config_is_complete = False
    _make_inert(checkpoint)
    if given.env is not None:
        checkpoint.config["env"] = given.env
    checkpoint.algorithm = _algorithm(checkpoint, given)
    _rename_default_policy(checkpoint)
    if "env" not in checkpoint.config and (name := _env_of_path(checkpoint)):
        checkpoint.config["env"] = name
        _note(checkpoint, "config.env", f"{name}, from the name of the trial's folder")
    _spaces_of_params(checkpoint)
    env_spaces = _spaces_of_env(checkpoint)
    for policy in checkpoint.policies.values():
        for kind, wanted in (
            ("observation_space", given.observation_spaces),
            ("action_space", given.action_spaces),
        ):
            names = (policy.policy_id, *_OLD_IDS.get(policy.policy_id, ()), None)
            space = next((wanted[name] for name in names if name in wanted), None)
            if space is not None:
                setattr(policy, kind, space)
                if env_spaces is not None and _gives_bounds(env_spaces[kind], space):
                    # Old gym printed Box(1,) whatever the bounds were, and people copy that.
                    setattr(policy, kind, env_spaces[kind])
                    path = f"policies.{policy.policy_id}.{kind}"
                    _note(checkpoint, path, f"its bounds: {_from_env(checkpoint)}")
            elif getattr(policy, kind) is None and env_spaces is not None:
                setattr(policy, kind, env_spaces[kind])
                _note(checkpoint, f"policies.{policy.policy_id}.{kind}", _from_env(checkpoint))


def _gives_bounds(known: Space, told: Space) -> bool:
    """Whether a space is the one that was told, with bounds where that has none."""
    if not (isinstance(known, spaces.Box) and isinstance(told, spaces.Box)):
        return False
    unbounded = not (np.isfinite(told.low).any() or np.isfinite(told.high).any())
    return known.shape == told.shape and unbounded and bool(np.isfinite(known.low).all())


def _make_inert(checkpoint: LegacyCheckpoint) -> None:
    """Takes code out of every config that came with the checkpoint."""
    checkpoint.config, findings = without_code(checkpoint.config, "config")
    for policy in checkpoint.policies.values():
        policy.config, own = without_code(policy.config, f"policies.{policy.policy_id}.config")
        findings += own
    # The same text stands in the config of each policy; once is enough to know.
    told = {finding.message for finding in checkpoint.findings}
    for finding in findings:
        if finding.message not in told:
            told.add(finding.message)
            checkpoint.findings.append(finding)


def _rename_default_policy(checkpoint: LegacyCheckpoint) -> None:
    """Ray 0.5 called the only policy `default`; every later Ray calls it `default_policy`."""
    if set(checkpoint.policies) != {"default"}:
        return
    policy = checkpoint.policies.pop("default")
    policy.policy_id = "default_policy"
    checkpoint.policies["default_policy"] = policy
    checkpoint.findings.append(
        Finding(
            "policy-id",
            Severity.INFO,
            Verdict.RENAMED,
            "policies.default",
            "the only policy is called default_policy since Ray 0.6",
        )
    )


def _note(checkpoint: LegacyCheckpoint, path: str, message: str, *, warn: bool = False) -> None:
    severity = Severity.WARNING if warn else Severity.INFO
    checkpoint.findings.append(Finding("derived", severity, Verdict.DERIVED, path, message))


def _from_env(checkpoint: LegacyCheckpoint) -> str:
    return f"taken from the environment {checkpoint.config.get('env')!r} as gymnasium has it"


def _algorithm(checkpoint: LegacyCheckpoint, given: Given) -> str:
    if given.algorithm:
        return registry.find(given.algorithm).name
    if checkpoint.algorithm:
        return registry.find(checkpoint.algorithm).name
    for policy in checkpoint.policies.values():
        match = _CLASS_OF_POLICY.fullmatch((policy.policy_class or "").rsplit(".", 1)[-1])
        if match and (name := _known(match[1])):
            _note(checkpoint, "algorithm", f"{name}, from the policy class {policy.policy_class}")
            return name
    if checkpoint.config:
        name, how = find_algorithm(checkpoint.config)
        if how == "by its keys":
            _note(checkpoint, "algorithm", f"{name}, the first that has all keys of the config")
            return name
    if name_of_path := _algorithm_of_path(checkpoint):
        _note(checkpoint, "algorithm", f"{name_of_path}, from the name of the trial's folder")
        return name_of_path
    raise MissingInformationError(
        "The checkpoint does not tell its algorithm, and no key of its config does.",
        where=str(checkpoint.source.path),
        fix="Give --algorithm PPO (Python: algorithm='PPO').",
    )


def _known(name: str) -> str | None:
    try:
        return registry.find(name).name
    except ConfigError:
        return None


def _algorithm_of_path(checkpoint: LegacyCheckpoint) -> str | None:
    """Tune and the Trainer call a trial's folder `PPO_CartPole-v0_…`."""
    for folder in (checkpoint.source.path, *checkpoint.source.path.resolve().parents[:4]):
        name, _, rest = folder.name.partition("_")
        if rest and (known := _known(name)):
            return known
    return None


def _env_of_path(checkpoint: LegacyCheckpoint) -> str | None:
    """The environment in the name of a trial's folder, if gymnasium could have it."""
    for folder in (checkpoint.source.path, *checkpoint.source.path.resolve().parents[:4]):
        match = _TRIAL.match(folder.name)
        if match and _known(match["algorithm"]):
            return match["env"]
    return None


def _spaces_of_params(checkpoint: LegacyCheckpoint) -> None:
    """Spaces that `multiagent.policies` holds, live (params.pkl) or as text (params.json)."""
    multi_agent = checkpoint.config.get("multiagent")
    specs = None
    if isinstance(multi_agent, Mapping):
        specs = multi_agent.get("policies") or multi_agent.get("policy_graphs")
    for policy_id, spec in specs.items() if isinstance(specs, Mapping) else ():
        policy = checkpoint.policies.get(str(policy_id))
        if policy is None or not isinstance(spec, (list, tuple)) or len(spec) < 3:
            continue
        policy.observation_space = policy.observation_space or _read_space(spec[1])
        policy.action_space = policy.action_space or _read_space(spec[2])
        if not policy.config and len(spec) > 3 and isinstance(spec[3], Mapping):
            policy.config = dict(spec[3])


def _read_space(value: Any) -> Space | None:
    return spaces.parse_repr(value) if isinstance(value, str) else spaces.from_object(value)


def _spaces_of_env(checkpoint: LegacyCheckpoint) -> dict[str, Space] | None:
    """The spaces of a single-agent environment that gymnasium offers under the config's name."""
    name = checkpoint.config.get("env")
    single = len(checkpoint.policies) == 1 and set(checkpoint.policies) <= set(SINGLE_AGENT_IDS)
    known = all(p.observation_space and p.action_space for p in checkpoint.policies.values())
    if not single or known or not isinstance(name, str) or is_stand_in(name):
        return None
    import gymnasium

    from rllib_compat.runtime.envs import resolve_env_name

    try:
        with warnings.catch_warnings():  # an old version of an environment is what is asked for
            warnings.simplefilter("ignore")
            env = gymnasium.make(resolve_env_name(name)[0])
    except (gymnasium.error.Error, ImportError, AttributeError):
        return None
    observation = spaces.from_object(env.observation_space)
    action = spaces.from_object(env.action_space)
    env.close()  # type: ignore[no-untyped-call]
    if observation is None or action is None:
        return None
    return {"observation_space": observation, "action_space": action}


def require_config(checkpoint: LegacyCheckpoint) -> None:
    """Makes sure that there is a config: the activation of a network is in no array.

    Raises:
        MissingInformationError: There is none.
    """
    if not checkpoint.config and not any(p.config for p in checkpoint.policies.values()):
        raise MissingInformationError(
            "No config was found: no params.pkl or params.json lies with the checkpoint. The "
            "weights do not tell the network's activation.",
            where=str(checkpoint.source.path),
            fix="Give --config params.json, or --config '{}' if the trainer had Ray's defaults.",
        )


def require_spaces(
    checkpoint: LegacyCheckpoint, policy: PolicyState, inputs: tuple[int, ...]
) -> None:
    """Makes sure that a policy has both spaces.

    The observation space follows from the network's inputs where nothing else tells it: a flat,
    unbounded Box, since that is what the network sees of any space.

    Raises:
        MissingInformationError: The action space was found nowhere; the number of outputs can't
            tell a Discrete space from a Box.
    """
    here = f"policies.{policy.policy_id}"
    if policy.observation_space is None:
        policy.observation_space = spaces.box(-np.inf, np.inf, inputs)
        _note(
            checkpoint,
            f"{here}.observation_space",
            f"derived from the network's {math.prod(inputs)} inputs: the preprocessed observation",
            warn=True,
        )
    if policy.action_space is None:
        raise MissingInformationError(
            "The action space is neither in the checkpoint nor in its params, and gymnasium has "
            f"no environment {checkpoint.config.get('env')!r}.",
            where=f"{here}.action_space",
            fix=f"Give --action-space {policy.policy_id}='Discrete(2)' (Python: action_space=).",
        )
