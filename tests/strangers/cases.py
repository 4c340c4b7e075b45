"""Which scripts there are, whose project or report each is like, and what must come out.

Each was written for this repository after reading what somebody did in public: it uses the same
feature in the same way, and shares no code with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "recorded.json"
_GITHUB = "https://github.com/"


class Case(NamedTuple):
    """A script.

    Attributes:
        script: Its file in `scripts/`.
        source: Where somebody did the same.
        ray: The Ray that it was written for.
        recorder: The Ray that `recorded.json` has its facts of; None: none has run it yet.
        says: What its error says, where it can't run on the installed Ray.
    """

    script: str
    source: str
    ray: str
    recorder: str | None
    says: str | None = None

    @property
    def theme(self) -> str:
        """What it is about: the first word of its name."""
        return self.script.partition("_")[0]


def _rows() -> Iterator[Case]:
    for line in _TABLE.strip().splitlines():
        script, source, ray, recorder = line.split()
        address = _GITHUB + (f"ray-project/ray/issues/{source}" if source.isdigit() else source)
        says = _SAYS.get(script)
        yield Case(script, address, ray, None if recorder == "-" else recorder, says)


#: script, source (an issue of Ray, or below GitHub), the Ray it was written for, and recorded by
_TABLE = """
agents_dict_spaces.py              31923                                          2.2.0  2.0.1
agents_dicts_central.py            6875                                           0.8.1  1.13.0
agents_dicts_without_base_class.py 23368                                          1.11.0 1.13.0
agents_groups_qmix.py              13037                                          1.1.0  1.13.0
agents_hierarchy.py                15831                                          1.3.0  1.13.0
agents_maddpg_spaces.py            wsjeon/maddpg-rllib/pull/7                     1.13.0 1.13.0
agents_mapping_by_episode.py       6669                                           0.8.2  1.13.0
agents_observation_function.py     8011                                           1.0.1  1.13.0
agents_plain_env.py                learnsyslab/gym-pybullet-drones/issues/128     1.9.2  1.13.0
agents_policies_as_set.py          ray-project/ray/pull/20735                     1.11.0 1.13.0
agents_random_opponent.py          llnl/Abmarl/issues/338                         1.12.1 1.13.0
agents_turns.py                    7659                                           0.8.2  1.13.0
agents_two_algorithms.py           7289                                           0.8.2  1.13.0
algorithms_a3c.py                  32812                                          1.13.0 1.13.0
algorithms_appo.py                 17432                                          1.5.0  1.13.0
algorithms_bandits.py              24075                                          1.12.0 1.13.0
algorithms_dqn_settings.py         22972                                          1.10.0 1.0.1
algorithms_es.py                   42579                                          1.13.0 1.0.1
algorithms_impala_lstm.py          4460                                           1.0.1  1.13.0
algorithms_sac_networks.py         13218                                          1.13.0 1.13.0
algorithms_sac_pendulum.py         8503                                           0.8.5  1.13.0
algorithms_simple_q.py             22972                                          1.13.0 1.13.0
algorithms_td3.py                  16168                                          1.3.0  1.13.0
callbacks_agents.py                10949                                          1.0.1  1.13.0
callbacks_change_batch.py          3459                                           0.8.7  1.13.0
callbacks_class.py                 22683                                          1.10.0 1.13.0
callbacks_dict.py                  8333                                           0.8.4  0.8.5
callbacks_dones.py                 4809                                           1.13.0 1.13.0
callbacks_learn_on_batch.py        ray-project/ray/pull/6972                      1.9.0  1.13.0
callbacks_reward_parts.py          7518                                           1.13.0 1.13.0
clients_of_agents.py               46087                                          1.13.0 1.13.0
config_default_copy.py             29724                                          1.13.0 1.13.0
config_seeded.py                   18245                                          1.6.0  1.13.0
config_unknown_key.py              3160                                           1.13.0 1.13.0
config_utilities.py                isk03276/LearnToMoveUR3/issues/2               1.13.0 1.13.0
curriculum_foreach_env.py          3990                                           0.8.5  1.13.0
curriculum_tasks.py                41894                                          1.13.0 1.13.0
envs_cartpole_subclass.py          18725                                          1.6.0  1.13.0
envs_corridor_lists.py             30525                                          1.13.0 1.13.0
envs_error_inside.py               oxwhirl/smac/issues/99                         1.13.0 1.13.0
envs_external.py                   6950                                           0.8.1  1.13.0
envs_given_twice.py                1440                                           0.8.5  1.0.1
envs_horizon.py                    7208                                           0.8.0  1.13.0
envs_odd_values.py                 16562                                          1.0.0  1.13.0
envs_registered_in_gym.py          prosysscience/RL-Job-Shop-Scheduling/pull/30   1.12.0 1.13.0
envs_seed_and_render.py            openai/gym/issues/402                          1.0.1  1.13.0
envs_tuple_and_dict.py             23368                                          1.11.0 1.13.0
envs_unbounded_actions.py          22259                                          1.10.0 1.13.0
envs_vector_env.py                 16083                                          1.4.0  1.13.0
envs_wrappers.py                   12027                                          1.0.1  1.13.0
evaluation_after_restore.py        12458                                          1.0.1  1.13.0
evaluation_during_training.py      6917                                           0.8.1  1.13.0
evaluation_env_config.py           17013                                          1.4.1  1.13.0
evaluation_own_function.py         13552                                          1.1.0  1.13.0
evaluation_worlds.py               smearle/particle-world                         1.9.2  1.13.0
exploration_curiosity.py           11639                                          1.0.0  1.13.0
exploration_noise.py               10828                                          1.13.0 1.13.0
exploration_own.py                 27669                                          1.13.0 1.13.0
exploration_soft_q.py              ray-project/ray/pull/7155                      1.9.2  1.13.0
exploration_turned_off.py          8189                                           0.8.5  1.13.0
export_for_serving.py              10733                                          1.0.1  1.13.0
gym_discrete_env.py                openai/gym/issues/3099                         1.13.0 1.13.0
gym_vector.py                      openai/gym/pull/1513                           1.13.0 1.13.0
gym_wrappers.py                    yandexdataschool/Practical_RL/pull/388         1.13.0 1.13.0
loops_helpers.py                   7490                                           1.13.0 1.13.0
loops_remote_workers.py            12833                                          1.0.1  1.13.0
loops_replay_stats.py              10958                                          1.13.0 1.13.0
loops_rollout_worker.py            5700                                           0.8.5  1.0.1
models_action_dist.py              5304                                           0.8.5  1.13.0
models_action_mask.py              4089                                           1.10.0 1.0.1
models_attention.py                ray-project/ray/pull/37526                     1.13.0 1.13.0
models_custom_loss.py              8193                                           0.8.6  1.13.0
models_custom_options.py           29724                                          0.8.5  0.8.5
models_images.py                   10284                                          1.13.0 1.13.0
models_inspected.py                11903                                          1.0.1  1.13.0
models_keras_without_tensorflow.py 5334                                           1.0.1  -
models_lists.py                    ray-project/ray/pull/8393                      1.13.0 1.13.0
models_lstm_loop.py                9220                                           0.8.6  1.13.0
models_own_rnn.py                  9071                                           0.8.5  1.13.0
models_parametric_q.py             7939                                           1.13.0 1.13.0
models_preprocessor.py             praveen-palanisamy/macad-agents/pull/12        0.8.6  -
models_settings.py                 2538                                           1.13.0 1.13.0
models_torch_dict.py               34155                                          2.3.0  1.13.0
modern_checkpoints.py              36761                                          2.5.0  2.8.1
modern_custom_model.py             39769                                          2.6.0  2.8.1
modern_gymnasium_env.py            32268                                          2.4.0  2.8.1
modules_beside_the_script.py       prosysscience/RL-Job-Shop-Scheduling/issues/41 1.13.0 1.13.0
new_config_objects.py              38120                                          2.8.1  2.8.1
new_multi_agent_config.py          Grid2op/grid2op/issues/535                     2.0.1  2.0.1
new_ppo_config.py                  30582                                          2.1.0  2.0.1
new_training_step.py               ray-project/ray/pull/23712                     2.8.1  2.8.1
new_tuner.py                       39748                                          2.6.0  2.0.1
notebook_train_and_look.ipynb      anyscale/academy/pull/3                        1.13.0 1.13.0
offline_batch_builder.py           15800                                          1.4.0  1.13.0
offline_registered_reader.py       ray-project/ray/pull/16957                     1.13.0 1.13.0
offline_write_and_read.py          ray-project/ray/pull/3473                      1.13.0 1.13.0
policies_alone.py                  indylab/nxdo                                   1.13.0 1.13.0
policies_build_torch.py            4788                                           0.8.5  1.0.1
policies_heuristic.py              7480                                           0.8.2  1.0.1
policies_stateful.py               12861                                          1.1.0  1.0.1
policies_with_updates.py           7855                                           0.8.4  1.0.1
rays_started_twice.py              6047                                           0.8.5  1.13.0
results_keys.py                    8693                                           1.13.0 1.0.1
rollout_own_loop.py                4569                                           1.1.0  1.13.0
rollout_saved.py                   ray-project/ray/pull/6065                      0.8.5  0.8.5
rollout_single_policy.py           3689                                           1.0.1  1.13.0
saving_and_going_on.py             7436                                           0.8.6  1.0.1
schedules_lr_and_entropy.py        8100                                           1.13.0 1.13.0
selfplay_add_policy.py             31351                                          1.13.0 1.13.0
selfplay_copies.py                 35393                                          1.13.0 1.13.0
spaces_portfolio.py                32657                                          1.13.0 1.13.0
tune_asha.py                       9702                                           1.13.0 1.13.0
tune_function_trainable.py         9123                                           0.8.6  1.0.1
tune_learning_checked.py           ray-project/ray/pull/15664                     1.13.0 1.13.0
tune_logger_creator.py             9123                                           1.0.1  1.0.1
tune_pbt.py                        18339                                          1.6.0  1.13.0
tune_pbt_lambda.py                 62173                                          1.13.0 1.13.0
tune_phases_reporter.py            3990                                           1.13.0 1.13.0
tune_replay_script.py              flow-project/flow/issues/920                   0.8.5  0.8.5
tune_run_analysis.py               9419                                           0.8.6  1.13.0
tune_run_experiments.py            1921                                           0.8.5  0.8.5
tune_stopper_and_sampling.py       5788                                           0.8.6  1.13.0
tune_trainable_class.py            16168                                          1.3.0  1.13.0
tune_trainer_subclass.py           4788                                           1.3.0  1.0.1
weights_between_trainers.py        31834                                          1.13.0 1.13.0
weights_import_model.py            5603                                           0.8.5  1.0.1
worker_own_env_state.py            stanfordnmbl/osim-rl/issues/79                 1.13.0 1.13.0
zoo_padded_agents.py               cpnota/autonomous-learning-library/pull/205    1.1.0  1.13.0
zoo_parallel.py                    14446                                          1.13.0 1.13.0
zoo_turns.py                       32382                                          1.13.0 1.13.0
"""

#: Script → what its error says.
_SAYS = {
    "callbacks_dones.py": "api_stack='old'",
    "models_keras_without_tensorflow.py": "write it with torch",
    "models_preprocessor.py": "gym.ObservationWrapper",
}

CASES = tuple(_rows())

_NEXT = "an episode begins with the next sample, not with the end of the one before"
#: Script → fact → why it is another one here, and will be.
DIFFERENCES = {
    "worker_own_env_state.py": {"fills": f"{_NEXT}; and Ray 1.13 reset each once more to check it"},
    "callbacks_class.py": {
        "calls.columns": "learners compute advantages, after all callbacks",
        "calls.start": _NEXT,
    },
    "models_lstm_loop.py": {"info": "learners alone compute values of recurrent networks"},
    "callbacks_dict.py": {
        "calls.start": _NEXT,
        "calls.step": "Ray 0.8 called it for a reset, too",
    },
}


def recorded() -> dict[str, Any]:
    """What each script has noted in the old Ray."""
    return json.loads(RECORDED.read_text("utf-8"))


def differences(expected: Any, found: Any, place: str = "") -> dict[str, str]:
    """Which facts differ, each with both values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        rows = [
            differences(expected.get(name), found.get(name), f"{place}.{name}".lstrip("."))
            for name in sorted({*expected, *found})
        ]
        return {place: text for row in rows for place, text in row.items()}
    return {} if expected == found else {place: f"{found!r}, not {expected!r}"}


class Outcome(NamedTuple):
    """What came of a script here.

    Attributes:
        kind: One of `KINDS`.
        wrong: What differs and is not known to; or that it failed, and how.
    """

    kind: str
    wrong: dict[str, str]


KINDS = ("as recorded", "says what to do", "differs", "runs, not recorded")


def outcome(case: Case, told: dict[str, Any]) -> Outcome:
    """What came of a script, by what it has noted here."""
    failed = told.get("failed")
    if case.says is not None:
        said = case.says in (failed or "")
        return Outcome(KINDS[1], {}) if said else Outcome(KINDS[2], {"says": str(told)})
    if failed is not None:
        return Outcome(KINDS[2], {"failed": failed})
    if case.recorder is None:
        return Outcome(KINDS[3], {})
    different = differences(recorded()[case.script], told)
    known = DIFFERENCES.get(case.script, {})
    new = {place: text for place, text in different.items() if place not in known}
    gone = {place: "differs no more" for place in known if place not in different}
    return Outcome(KINDS[2] if different else KINDS[0], {**new, **gone})
