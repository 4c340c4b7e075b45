"""What a legacy config says of a policy's network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat import registry
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, DictSpace, Discrete, MultiDiscrete, Space, TupleSpace
from rllib_compat.registry import keys

#: Which key of `model` asks for which recurrent network around the model.
_WRAPPERS = {"use_attention": "attention (GTrXL)", "use_lstm": "LSTM"}

#: What Ray from 0.8.4 on puts where a key was that has moved (`DEPRECATED_VALUE`), and the keys of
#: networks for which it did. Elsewhere -1 is a number.
_MARK = -1
_MOVED = {
    "lstm_use_prev_action_reward",
    "parameter_noise",
    "use_state_preprocessor",
    "vf_share_layers",
}

#: Algorithms whose value function had layers of its own unless the user said otherwise; in all
#: others it shared the policy's (`MODEL_DEFAULTS`, and each algorithm's `DEFAULT_CONFIG`).
_OWN_VALUE_LAYERS = registry.family("PPO")


@frozen
class ModelSettings:
    """What a legacy config says of a policy's network, with the defaults of its Ray.

    Attributes:
        hiddens: The hidden sizes; None where the user left the default.
        activation: The hidden layers' activation.
        shares_layers: `vf_share_layers`, from `model` or from the top level (before Ray 1.3).
        free_log_std: As given.
        custom_model: What the user registered or passed, or None.
        wrapper: The recurrent network around the model that the config asks for, or None.
        kl_coeff: PPO's initial KL coefficient.
        entropy_coeff: PPO's entropy coefficient; None where a schedule changes it.
        model: All of `model`, with what the policy overrides in it.
        config: All of the trainer's config, with what the policy overrides in it.
        algorithm: RLlib's registered name of the algorithm.
        ray: The Ray that wrote the checkpoint, if known.
        layout: The checkpoint's format, as in `Source`.
    """

    hiddens: tuple[int, ...] | None = None
    activation: str = "tanh"
    shares_layers: bool = False
    free_log_std: bool = False
    custom_model: Any = None
    wrapper: str | None = None
    kl_coeff: float | None = 0.2
    entropy_coeff: float | None = 0.0
    model: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = "PPO"
    ray: str | None = None
    layout: str = ""

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """The hidden sizes, with the default."""
        return tuple(keys.model_default("fcnet_hiddens")) if self.hiddens is None else self.hiddens

    def setting(self, key: str) -> Any:
        """What the config says of a key of its algorithm, or the last default that it had."""
        said = self.config.get(key)
        return keys.last_default(self.algorithm, key) if said is None else said

    @classmethod
    def of(cls, checkpoint: LegacyCheckpoint, policy: PolicyState) -> ModelSettings:
        """What a checkpoint's config says of the network of one of its policies."""
        return cls.from_config(
            checkpoint.config,
            policy.config,
            algorithm=checkpoint.algorithm,
            ray=checkpoint.source.ray_version,
            layout=checkpoint.source.layout,
        )

    @classmethod
    def of_module(cls, options: Mapping[str, Any], algorithm: str) -> ModelSettings:
        """What the config of a module says, keys of `model` among the others.

        It has no preprocessor of RLlib's.
        """
        config = {**options, "model": options, "_disable_preprocessor_api": True}
        return cls.from_config(config, {}, algorithm=algorithm)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        policy: Mapping[str, Any],
        *,
        algorithm: str | None = None,
        ray: str | None = None,
        layout: str = "",
    ) -> ModelSettings:
        """Reads them from a trainer's config and what a policy overrides in it."""
        model = _given(config.get("model")) | _given(policy.get("model"))
        merged = _given(config) | _given(policy)
        require_sound(merged, "config")
        require_sound(model, "config.model")
        hiddens = None
        if "fcnet_hiddens" in model or "post_fcnet_hiddens" in model:
            # Ray 1.3 – 2.x: the fully connected network simply gets the post layers, too.
            given = model_setting(model, "fcnet_hiddens")
            hiddens = (*given, *(model.get("post_fcnet_hiddens") or ()))
        activation = model_setting(model, "fcnet_activation")
        before_post = ray is not None and Version(ray) < Version("1.3")
        if not model.get("fcnet_hiddens", True) and not before_post:
            activation = model_setting(model, "post_fcnet_activation")
        scheduled = merged.get("entropy_coeff_schedule") is not None
        return cls(
            hiddens=hiddens,
            activation="linear" if activation is None else str(activation),
            shares_layers=_shares_layers(merged, model, algorithm or "PPO"),
            free_log_std=bool(model.get("free_log_std", False)),
            custom_model=model.get("custom_model"),
            wrapper=next((kind for key, kind in _WRAPPERS.items() if model.get(key)), None),
            kl_coeff=_number(merged.get("kl_coeff", 0.2)),
            entropy_coeff=None if scheduled else _number(merged.get("entropy_coeff", 0.0)),
            model=model,
            config=merged,
            algorithm=algorithm or "PPO",
            ray=ray,
            layout=layout,
        )


def model_setting(model: Mapping[str, Any], key: str) -> Any:
    """What a config's `model` says of a key, or the default that it had in every Ray."""
    return model[key] if key in model else keys.model_default(key)


_LISTS_OF_SIZES = (
    *("fcnet_hiddens", "post_fcnet_hiddens", "hiddens", "actor_hiddens", "critic_hiddens"),
    *("actor_hidden", "critic_hidden", "head_fcnet_hiddens"),
)
_SIZES = (
    *("lstm_cell_size", "dim", "num_atoms", "n_step", "num_actions"),
    *("attention_num_transformer_units", "attention_dim", "attention_num_heads"),
    *("attention_head_dim", "attention_position_wise_mlp_dim", "attention_memory_inference"),
    *("attention_memory_training", "attention_use_n_prev_actions", "attention_use_n_prev_rewards"),
)
_NUMBERS = ("v_min", "v_max", "attention_init_gru_gate_bias", "sigma0")
_LARGEST = 1 << 16
_LONGEST = 1_000_000
_LONGEST_LIST = 1000
_LARGEST_NUMBER = 1e30


def require_sound(config: Mapping[str, Any], where: str) -> None:
    """Makes sure that what a config says of layers can be reckoned with."""
    for wanted, (keys_of_kind, is_sound) in _SOUND.items():
        for key in keys_of_kind:
            value = config.get(key)
            if value is not None and not is_sound(value):
                raise CheckpointError(
                    f"The config's {key!r} should be {wanted}, and is {repr(value)[:80]}.",
                    where=f"{where}.{key}",
                    fix="Pass the config of the training: --config params.json.",
                )


def _is_size(value: Any, largest: int = _LARGEST) -> bool:
    # -1 means "none" or "all"; numpy takes no bool as a size.
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and -1 <= int(value) <= largest


def _is_finite(value: object) -> bool:
    number = _number(value)
    return number is not None and abs(number) <= _LARGEST_NUMBER  # distances of two are reckoned


def _are_sizes(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) <= _LONGEST_LIST
        and all(map(_is_size, value))
    )


#: What describes a network's layers, and is reckoned with; and what makes sure of it.
_SOUND: Mapping[str, tuple[tuple[str, ...], Callable[[Any], bool]]] = {
    "a list of sizes": (_LISTS_OF_SIZES, _are_sizes),
    "a size": (_SIZES, _is_size),
    # Sequences of QMIX were never cut: 999,999.
    "a length": (("max_seq_len",), lambda value: _is_size(value, _LONGEST)),
    "a number": (_NUMBERS, _is_finite),
}


def _shares_layers(config: Mapping[str, Any], model: Mapping[str, Any], algorithm: str) -> bool:
    for given in (config.get("vf_share_layers"), model.get("vf_share_layers")):
        if given is not None:
            return bool(given)
    return algorithm not in _OWN_VALUE_LAYERS


def _given(value: object) -> dict[str, Any]:
    """The keys of a dict that say something: not a list that is None, nor what Ray has moved.

    An array among them is read as a list: it could be asked neither whether it is
    true nor whether it equals something.
    """
    found = dict(value) if isinstance(value, Mapping) else {}
    for key, array in found.items():
        if isinstance(array, np.ndarray):
            if array.size > _LONGEST_LIST:
                raise CheckpointError(
                    f"The config's {str(key)[:80]!r} is an array of {array.size:,} numbers, which "
                    "is too large for a key of RLlib.",
                    where="config",
                    fix="Pass the config of the training: --config params.json.",
                )
            found[key] = array.tolist()
    return {
        key: value
        for key, value in found.items()
        if not (key in _MOVED and value == _MARK) and not (key in _LISTS_OF_SIZES and value is None)
    }


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def distribution_inputs(space: Space) -> int | None:
    """How many numbers RLlib's default action distribution takes for an action space."""
    if isinstance(space, Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return sum(space.nvec)
    if isinstance(space, Box):
        return 2 * space.flat_size()
    if isinstance(space, (TupleSpace, DictSpace)):
        parts = [distribution_inputs(part) for part in space.parts()]
        return None if None in parts else sum(p for p in parts if p is not None)
    return None
