"""Steps over what learns: replay buffers, exploration, gradients, and successors.

A config of its own replaces Ray's default of a replay buffer, so it has to be whole. The steps go
on where the one before has come to; all but the first look at the type it has set.
"""

from __future__ import annotations

from rllib_compat.config.defaults import todays_default
from rllib_compat.config.rule import Context
from rllib_compat.config.rules.exploration import (
    EPSILON,
    NOISE_ON_WEIGHTS,
    ON_WEIGHTS,
    PARAMETER_NOISE,
    TEMPERATURE,
    type_name,
)
from rllib_compat.config.rules.replay import BUFFER, buffer_type
from rllib_compat.config.rules.training import was_tensorflow
from rllib_compat.config.steps.step import ABSENT, COMPUTED, REPLAYING, Change, SettingsView, Step
from rllib_compat.neutral.deferred import PublicCall
from rllib_compat.ray_versions import replay

# Replay buffers

#: Those whose steps have priorities by default.
PRIORITIZING = ("DQN", "APEX", "DDPG", "APEX_DDPG")

TYPE, CAPACITY = f"{BUFFER}.type", f"{BUFFER}.capacity"
ALPHA, BETA = f"{BUFFER}.alpha", f"{BUFFER}.beta"
#: What sets priorities, by today's names and by those of the old stack's buffers.
PRIORITIES = (
    ALPHA,
    BETA,
    f"{BUFFER}.prioritized_replay_alpha",
    f"{BUFFER}.prioritized_replay_beta",
)


def _type(given: SettingsView, context: Context) -> Change | None:
    several = "multi_agent.policies" in given
    own = list(given.below(BUFFER))
    if not (own or several or context.stack == "old"):
        return None
    kind = given.get(TYPE)
    if not kind:
        # Another's is where the config says how.
        wanted = context.algorithm in PRIORITIZING or any("alpha" in n or "beta" in n for n in own)
        kind = buffer_type(wanted, context)
    if not isinstance(kind, str):
        return None
    return Change({TYPE: f"MultiAgent{kind}" if several and kind[:10] != "MultiAgent" else kind})


def _capacity(given: SettingsView, context: Context) -> Change | None:
    if not isinstance(given.get(TYPE), str) or CAPACITY in given:
        return None
    capacity = todays_default(context.algorithm, CAPACITY)[1]
    return Change({CAPACITY: capacity}, f"{given.get(TYPE)} of {capacity} steps")


def _no_priorities(given: SettingsView, _: Context) -> Change | None:
    there = [name for name in PRIORITIES if given.get(name) is not None]
    if not isinstance(given.get(TYPE), str) or _is_prioritized(given) or not there:
        return None
    names = ", ".join(name.rpartition(".")[2] for name in there)
    message = f"a buffer without priorities does not read {names}"
    return Change(dict.fromkeys(PRIORITIES, ABSENT), message)


def _is_prioritized(given: SettingsView) -> bool:
    return isinstance(given.get(TYPE), str) and "Prioritized" in given.get(TYPE)


def _weights(given: SettingsView, _: Context) -> Change | None:
    kind = given.get(TYPE)
    weighted = replay.weighted_buffer(kind) if isinstance(kind, str) else None
    if weighted is None:
        return None
    message = f"this Ray's learners can't use {kind}"
    return Change({TYPE: weighted, ALPHA: 0.0, BETA: 0.0}, message)


def _class(given: SettingsView, _: Context) -> Change | None:
    kind = given.get(TYPE)
    if not isinstance(kind, str):
        return None
    return Change({TYPE: PublicCall("old_replay_buffer", (kind,))})


def _has_noisy_weights(given: SettingsView) -> bool:
    asked = given.get(f"{EXPLORATION_CONFIG}.type"), type_name(given.get(EXPLORATION_CONFIG))
    return NOISE_ON_WEIGHTS in given or PARAMETER_NOISE in given or ON_WEIGHTS in asked


BUFFER_KEY = "replay_buffer_config"

REPLAY = (
    Step(
        "replay_type",
        "A replay buffer config of its own replaces Ray's default as a whole, so it names a type: "
        "one for several agents where there are several policies.",
        algorithms=REPLAYING,
        reads=(BUFFER, "multi_agent.policies"),
        sets={TYPE: COMPUTED},
        change=_type,
    ),
    Step(
        "replay_capacity",
        "For the same reason it names a capacity: Ray's default where the config gives none.",
        algorithms=REPLAYING,
        reads=(TYPE, CAPACITY),
        sets={CAPACITY: COMPUTED},
        key=BUFFER_KEY,
        change=_capacity,
    ),
    Step(
        "no_priorities",
        "A replay buffer without priorities takes no exponents for them.",
        algorithms=REPLAYING,
        reads=(TYPE, *PRIORITIES),
        sets=dict.fromkeys(PRIORITIES, ABSENT),
        key=BUFFER_KEY,
        change=_no_priorities,
    ),
    Step(
        "priorities",
        "Every release's prioritized buffers began with these exponents; some of Ray's now begin "
        "with others, or with none.",
        algorithms=REPLAYING,
        stack="new",
        reads=(TYPE,),
        sets={ALPHA: 0.6, BETA: 0.4},
        unless_given=True,
        when=_is_prioritized,
    ),
    Step(
        "replay_weights",
        "Learners of Ray 2.40 ask for weights that its plain replay buffers don't give. A "
        "prioritized one with `alpha=0` samples as evenly, and all its weights are 1.",
        algorithms=REPLAYING,
        stack="new",
        reads=(TYPE,),
        sets={TYPE: COMPUTED, ALPHA: 0.0, BETA: 0.0},
        key=BUFFER_KEY,
        change=_weights,
    ),
    Step(
        "replay_class",
        "On the old API stack DQN takes the buffer's class, not its name.",
        algorithms=("DQN",),
        stack="old",
        reads=(TYPE,),
        sets={TYPE: COMPUTED},
        change=_class,
    ),
)

# Exploration

BATCH_MODE = "env_runners.batch_mode"
EXPLORATION_CONFIG = "env_runners.exploration_config"
UNPREPROCESSED = "experimental._disable_preprocessor_api"


def _one_by_one(given: SettingsView, _: Context) -> Change | None:
    """Gives each key of a whole `exploration_config` a setting of its own."""
    config = given.get(EXPLORATION_CONFIG)
    if not isinstance(config, dict):
        return None
    apart = {f"{EXPLORATION_CONFIG}.{key}": value for key, value in config.items()}
    given_apart = set(given.below(EXPLORATION_CONFIG))
    return Change(
        {EXPLORATION_CONFIG: ABSENT, **{k: v for k, v in apart.items() if k not in given_apart}}
    )


def _ends_above_zero(epsilon: object) -> bool:
    return bool(epsilon[-1][1] if isinstance(epsilon, list) else epsilon)


EXPLORATION = (
    Step(
        "soft_q",
        "Soft Q drew actions by their values, whatever epsilon was; the new modules do both.",
        stack="new",
        reads=(TEMPERATURE, EPSILON),
        sets={EPSILON: 0.0},
        when=lambda g: TEMPERATURE in g and _ends_above_zero(g.effective(EPSILON)),
        message="soft Q drew actions by their values, whatever epsilon was",
    ),
    Step(
        "parameter_noise",
        "Noise on weights is for whole episodes, which are looked at once they have ended. RLlib "
        "asked for `complete_episodes` with it, too, since Ray 0.8.3.",
        key="batch_mode",
        reads=(NOISE_ON_WEIGHTS, PARAMETER_NOISE, EXPLORATION_CONFIG, BATCH_MODE),
        sets={BATCH_MODE: "complete_episodes"},
        when=lambda g: _has_noisy_weights(g) and g.get(BATCH_MODE) != "complete_episodes",
        message="noise on weights needs whole episodes",
    ),
    Step(
        "exploration_config",
        "The settings of `exploration_config` and those of separate keys are merged.",
        stack="old",
        reads=(EXPLORATION_CONFIG,),
        sets={EXPLORATION_CONFIG: COMPUTED},
        change=_one_by_one,
    ),
    Step(
        "preprocessed",
        "PG left observations of several parts as they are from Ray 1.10 on, and Curiosity's "
        "networks take vectors only.",
        algorithms=("PG",),
        stack="old",
        reads=(EXPLORATION_CONFIG, UNPREPROCESSED),
        sets={UNPREPROCESSED: False},
        when=lambda g: g.get(f"{EXPLORATION_CONFIG}.type") == "Curiosity",
        message="Curiosity needs observations as vectors",
    ),
    Step(
        "epsilon_greedy",
        "The old API stack's policies need an exploration type, which Ray's configs no longer "
        "have by default. DQN explored by epsilon.",
        algorithms=("DQN",),
        stack="old",
        sets={f"{EXPLORATION_CONFIG}.type": "EpsilonGreedy"},
        unless_given=True,
    ),
    Step(
        "stochastic_sampling",
        "The old API stack's policies need an exploration type, which Ray's configs no longer "
        "have by default. All but DQN sampled their actions.",
        stack="old",
        sets={f"{EXPLORATION_CONFIG}.type": "StochasticSampling"},
        unless_given=True,
    ),
)

# Gradients

CLIP, CLIP_BY = "training.grad_clip", "training.grad_clip_by"


def _each_by_itself(given: SettingsView, context: Context) -> Change | None:
    if given.get(CLIP_BY) not in (None, "global_norm"):  # which those policies never read
        return None
    if given.effective(CLIP) is None or not was_tensorflow(context):
        return None
    return Change({CLIP_BY: "norm"}, "TensorFlow's policies clipped the gradient of each variable")


GRADIENTS = (
    Step(
        "grad_clip",
        "DQN, R2D2, SAC and DDPG clipped each variable's gradient by its norm where they ran on "
        "TensorFlow (`minimize_and_clip`). Torch, the installed Ray and all other algorithms "
        "clip by the "
        "norm of all gradients together.",
        algorithms=("DQN", "APEX", "R2D2", "SAC", "CQL", "DDPG", "APEX_DDPG", "TD3"),
        stack="new",
        reads=(CLIP, CLIP_BY),
        sets={CLIP_BY: "norm"},
        key="grad_clip",
        change=_each_by_itself,
    ),
)


# Successors


def _simple_q(_: SettingsView, context: Context) -> Change | None:
    plain = {TYPE: buffer_type(False, context)}
    return Change({"training.double_q": False, "training.dueling": False, **plain})


SUCCESSORS = (
    Step(
        "simple_q",
        "SimpleQ is DQN without double-Q, dueling and prioritized replay.",
        legacy=("SimpleQ",),
        sets={"training.double_q": False, "training.dueling": False, TYPE: COMPUTED},
        unless_given=True,
        change=_simple_q,
    ),
)
