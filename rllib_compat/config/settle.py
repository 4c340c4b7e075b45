"""What only the whole config can tell: settings that today's `validate()` checks together.

Each step looks at the settings that the rules made, mends what can't stand together, and says so.
Values that a grid search varies are left alone: each trial settles them for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rllib_compat import ray_versions, registry
from rllib_compat.config.context import Context
from rllib_compat.config.deferred import AdaptedCallbacks, AdaptedEnv, EnvSpace, OldReplayBuffer
from rllib_compat.config.rule import Settings, nested
from rllib_compat.config.rules.offline import writes_as_today
from rllib_compat.config.rules.replay import BUFFER, buffer_type
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.runtime.offline.files import Recording

Step = Callable[[Settings, Context], None]

FRAGMENT = "env_runners.rollout_fragment_length"
RUNNERS = "env_runners.num_env_runners"
ENVS = "env_runners.num_envs_per_env_runner"
BATCH = "training.train_batch_size_per_learner"
MINIBATCH = "training.minibatch_size"

# Today's defaults of what the steps compare with.
DEFAULTS = {
    "PPO": {RUNNERS: 2, BATCH: 4000, MINIBATCH: 128},
    "APPO": {RUNNERS: 2, BATCH: 500, FRAGMENT: 50},
    "IMPALA": {RUNNERS: 2, BATCH: 500, FRAGMENT: 50},
}
CAPACITY = {"DQN": 50_000, "SAC": 1_000_000, "CQL": 1_000_000}
# What every release's prioritized buffers began with; today's for many agents have others, or none.
PRIORITIES = {"alpha": 0.6, "beta": 0.4}
TODAYS_KEYS = ("num_env_runners", "num_learners", "enable_env_runner_and_connector_v2")
SEQUENCE = 20


def settle(settings: Settings, context: Context) -> None:
    """Mends `settings` in place, step by step."""
    for name, step in STEPS.items():
        step(settings, replace(context, rule=f"settle.{name}"))


def _say(context: Context, where: str, message: str, *, loud: bool = False) -> None:
    severity = Severity.WARNING if loud else Severity.INFO
    context.note(Verdict.CONVERTED, f".{where}", message, severity=severity)


def _get(settings: Settings, name: str, context: Context, default: Any = None) -> Any:
    """A setting that can be computed with, else today's default."""
    value = settings.get(name)
    if value is None:
        value = DEFAULTS.get(context.algorithm, {}).get(name, default)
    return value


def _atari(settings: Settings, context: Context) -> None:
    """Until Ray 2.40, Atari games got the DeepMind wrappers and clipped rewards by themselves."""
    name = settings.get("env.env")
    if context.stack == "old" or not isinstance(name, str) or "NoFrameskip" not in name:
        return
    if any(key in context.config for key in TODAYS_KEYS):
        return
    if "env.preprocessor_pref" not in settings:
        settings["env.preprocessor_pref"] = "deepmind"
        _say(context, "env", "an Atari game: the DeepMind wrappers, as by default before")
    if settings.get("env.clip_rewards") is None and settings["env.preprocessor_pref"] == "deepmind":
        settings["env.clip_rewards"] = True


def _fragment(settings: Settings, context: Context) -> None:
    """PPO takes whole rounds of fragments; their sum has to come within 10 % of its batch."""
    if context.algorithm != "PPO" or not isinstance(settings.get(FRAGMENT), int):
        return
    learners = settings.get("learners.num_learners") or 1
    batch = settings.get("training.train_batch_size") or _get(settings, BATCH, context)
    runners, envs = _get(settings, RUNNERS, context, 0), _get(settings, ENVS, context, 1)
    if not all(type(n) is int for n in (learners, batch, runners, envs)):
        return
    if min(settings[FRAGMENT], batch, envs) < 1:
        return
    total = batch * learners if BATCH in settings else batch
    per_round = max(runners, 1) * envs * settings[FRAGMENT]
    rounds = -(-total // per_round)
    if rounds * per_round - total <= 0.1 * total:
        return
    name = "training.train_batch_size" if context.stack == "old" else BATCH
    settings[name] = -(-rounds * per_round // (learners if name == BATCH else 1))
    _say(
        context,
        "train_batch_size",
        f"fragments come in rounds of {per_round} steps ({settings[FRAGMENT]} × {envs} "
        f"environments × {max(runners, 1)} env runners); {rounds} of them make "
        f"{rounds * per_round} steps, which is what RLlib trained on when it was told {total}",
    )


def _minibatch(settings: Settings, context: Context) -> None:
    """PPO's minibatch fits into its batch."""
    if context.algorithm != "PPO":
        return
    batch = settings.get("training.train_batch_size") or _get(settings, BATCH, context)
    minibatch = _get(settings, MINIBATCH, context)
    if isinstance(batch, int) and isinstance(minibatch, int) and minibatch > batch:
        settings[MINIBATCH] = batch
        _say(
            context,
            "sgd_minibatch_size",
            f"{minibatch} does not fit into a train batch of {batch}, which is taken instead",
        )


def _n_step(settings: Settings, context: Context) -> None:
    """A fragment of an off-policy algorithm holds at least one n-step return."""
    fragment, steps = settings.get(FRAGMENT), settings.get("training.n_step", 1)
    if context.algorithm not in ("DQN", "SAC", "CQL") or not isinstance(fragment, int):
        return
    if isinstance(steps, (list, tuple)):
        steps = steps[1]
    if isinstance(steps, int) and fragment < steps:
        settings[FRAGMENT] = steps
        _say(
            context,
            "rollout_fragment_length",
            f"{fragment} is shorter than n_step={steps}",
        )


def _ddppo(settings: Settings, context: Context) -> None:
    """DDPPO's workers learned from their own samples: a learner for each, with such a batch."""
    if context.legacy_algorithm != "DDPPO" or context.stack == "old":
        return
    fragment, envs = settings.get(FRAGMENT, 100), settings.get(ENVS, 5)
    workers = settings.get(RUNNERS)
    if type(workers) is int and workers > 0:
        settings.setdefault("learners.num_learners", workers)
    if type(fragment) is int and type(envs) is int:
        settings[BATCH] = fragment * envs
        settings[FRAGMENT] = "auto"
        _say(context, "num_workers", f"a learner for each, {fragment * envs} steps a batch")


def _many_agents(settings: Settings, context: Context) -> None:
    """Multi-agent environments of the new stack were not vectorized at first."""
    envs = settings.get(ENVS)
    if "multi_agent.policies" not in settings or context.stack == "old":
        return
    if isinstance(envs, int) and envs > 1 and not ray_versions.vectorizes_multi_agent_envs():
        settings[ENVS] = 1
        _say(
            context,
            "num_envs_per_worker",
            f"the installed Ray steps one multi-agent environment per env runner, not {envs}",
            loud=True,
        )


def _replay_buffer(settings: Settings, context: Context) -> None:
    """A buffer config of its own replaces Ray's default: it names type and capacity."""
    own = [name for name in settings if name.startswith(f"{BUFFER}.")]
    several = "multi_agent.policies" in settings
    if context.algorithm not in CAPACITY or not (own or several or context.stack == "old"):
        return
    kind = settings.get(f"{BUFFER}.type") or _buffer_type(own, context)
    if not isinstance(kind, str):
        return
    if several and not kind.startswith("MultiAgent"):
        kind = f"MultiAgent{kind}"
    if f"{BUFFER}.capacity" not in settings:
        settings[f"{BUFFER}.capacity"] = CAPACITY[context.algorithm]
        _say(context, "replay_buffer_config", f"{kind} of {CAPACITY[context.algorithm]} steps")
    if "Prioritized" not in kind:
        for name in ("alpha", "beta", "prioritized_replay_alpha", "prioritized_replay_beta"):
            if settings.pop(f"{BUFFER}.{name}", None) is not None:
                _say(context, name, "a buffer without priorities does not read it")
    elif context.stack == "new":
        for name, value in PRIORITIES.items():
            settings.setdefault(f"{BUFFER}.{name}", value)
    weighted = ray_versions.weighted_buffer(kind) if context.stack == "new" else None
    if weighted is not None:
        settings |= {f"{BUFFER}.alpha": 0.0, f"{BUFFER}.beta": 0.0}
        _say(context, "replay_buffer_config", f"{kind} gives this Ray's learners no weights")
        kind = weighted
    by_name = context.stack == "new" or context.algorithm != "DQN"
    settings[f"{BUFFER}.type"] = kind if by_name else OldReplayBuffer(kind)


def _buffer_type(own: list[str], context: Context) -> str:
    """The type where the config names none: DQN's is prioritized, or keys for it were given."""
    wanted = context.algorithm == "DQN" or any("alpha" in n or "beta" in n for n in own)
    return buffer_type(wanted, context)


def _old_exploration(settings: Settings, context: Context) -> None:
    """The old stack's policies need an exploration type; Ray's config has none by default now."""
    if context.stack != "old":
        return
    prefix = "env_runners.exploration_config"
    if isinstance(settings.get(prefix), dict):
        config = settings.pop(prefix)
        for key, value in config.items():
            settings.setdefault(f"{prefix}.{key}", value)
    kind = "EpsilonGreedy" if context.algorithm == "DQN" else "StochasticSampling"
    settings.setdefault(f"{prefix}.type", kind)


def _evaluation(settings: Settings, context: Context) -> None:
    """Parallel evaluation needs env runners of its own; "auto" needs parallel evaluation."""
    parallel = "evaluation.evaluation_parallel_to_training"
    if settings.get(parallel) is True and not settings.get("evaluation.evaluation_num_env_runners"):
        settings[parallel] = False
        _say(
            context,
            "evaluation_parallel_to_training",
            "there are no evaluation env runners that could work in parallel",
            loud=True,
        )
    duration = "evaluation.evaluation_duration"
    if settings.get(duration) == "auto" and settings.get(parallel) is not True:
        settings[duration] = 10
        _say(
            context,
            "evaluation_duration",
            "'auto' needs parallel evaluation; 10, Ray's default, is taken",
            loud=True,
        )


def _offline(settings: Settings, context: Context) -> None:
    """A local learner has to know how many passes an iteration makes."""
    if not registry.of(context.algorithm).offline or context.stack == "old":
        return
    if context.algorithm == "CQL":
        settings["training.lr"] = None  # SAC's validate() wants the separate rates alone
    passes = "offline_data.dataset_num_iters_per_learner"
    if not settings.get("learners.num_learners") and settings.get(passes) is None:
        settings[passes] = 1
        _say(
            context,
            "train_batch_size",
            "one train batch per iteration, as before",
        )


def _spaces(settings: Settings, context: Context) -> None:
    """Without evaluation, offline algorithms see no environment; and have to be told its spaces."""
    if not registry.of(context.algorithm).offline or context.stack == "old":
        return
    evaluated = any(
        settings.get(f"evaluation.evaluation_{name}") for name in ("interval", "num_env_runners")
    )
    missing = [
        name
        for name in ("observation_space", "action_space")
        if f"environment.{name}" not in settings
    ]
    if evaluated or not missing or "offline_data.input_" not in settings:
        return
    env = nested(settings, "env")
    if env.get("env") is None:
        context.note(
            Verdict.REFUSED,
            ".env",
            "offline data alone does not tell the spaces",
            severity=Severity.ERROR,
            hint="pass env=, or observation_space and action_space",
        )
        return
    for name in missing:
        settings[f"environment.{name}"] = EnvSpace(name, AdaptedEnv(env))
    _say(context, "env", "asked once for its spaces, as nothing is evaluated in it")


def _offline_iterations(settings: Settings, context: Context) -> None:
    """What is read offline counts as trained; an iteration that waits for samples never ends."""
    sampled = "reporting.min_sample_timesteps_per_iteration"
    if not registry.of(context.algorithm).offline or context.stack == "old":
        return
    if not settings.get(sampled):
        return
    settings.setdefault("reporting.min_train_timesteps_per_iteration", settings.pop(sampled))
    settings[sampled] = 0
    _say(
        context,
        "min_sample_timesteps_per_iteration",
        "offline algorithms sample nothing; it became min_train_timesteps_per_iteration",
    )


def _lstm(settings: Settings, context: Context) -> None:
    """Modules with an LSTM have to be told how long their sequences are."""
    name = "rl_module.model_config.max_seq_len"
    if settings.get("rl_module.model_config.use_lstm") is True and name not in settings:
        settings[name] = SEQUENCE
        _say(context, "model.use_lstm", f"sequences of {SEQUENCE} steps, as by default before")


def _burn_in(settings: Settings, context: Context) -> None:
    """R2D2 trained on `max_seq_len` steps after the burn-in; DQN counts both."""
    burn_in = settings.get("training.burn_in_len")
    if context.algorithm != "DQN" or not isinstance(burn_in, int) or burn_in <= 0:
        return
    name = "rl_module.model_config.max_seq_len"
    length = settings.get(name, SEQUENCE)
    if isinstance(length, int) and context.legacy_algorithm == "R2D2":
        settings[name] = length + burn_in
        _say(context, "model.max_seq_len", f"{length} steps after {burn_in} of burn-in")


def _output(settings: Settings, context: Context) -> None:
    """The callbacks write JSON as before; today's writer takes whole episodes, or single steps."""
    output = settings.get("offline_data.output")
    if context.stack == "old" and output is not None:
        # Its writers know no episodes; today's validate() asks for whole ones unless told so.
        settings.setdefault("offline_data.output_write_episodes", False)
    if context.stack == "old" or not isinstance(output, str):
        return
    if not writes_as_today(context):
        del settings["offline_data.output"]
        compress = settings.pop("offline_data.output_compress_columns", None)
        options = {
            "compress": None if compress is None else tuple(compress),
            "max_file_size": context.get("output_max_file_size"),
        }
        recording = Recording(output, **{k: v for k, v in options.items() if v is not None})
        callbacks = settings.get("callbacks.callbacks_class")
        legacy = callbacks.callbacks if isinstance(callbacks, AdaptedCallbacks) else callbacks
        settings["callbacks.callbacks_class"] = AdaptedCallbacks(legacy, recording)
    elif settings.get("env_runners.batch_mode") != "complete_episodes":
        settings.setdefault("offline_data.output_write_episodes", False)
        _say(context, "output", "single steps are written, as fragments cut through episodes")


STEPS: dict[str, Step] = {
    "atari": _atari,
    "many_agents": _many_agents,
    "ddppo": _ddppo,
    "fragment": _fragment,
    "minibatch": _minibatch,
    "n_step": _n_step,
    "replay_buffer": _replay_buffer,
    "old_exploration": _old_exploration,
    "evaluation": _evaluation,
    "offline": _offline,
    "spaces": _spaces,
    "offline_iterations": _offline_iterations,
    "lstm": _lstm,
    "burn_in": _burn_in,
    "output": _output,
}
