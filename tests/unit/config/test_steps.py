"""Steps do what their rows declare, and nothing else."""

import pytest
from gymnasium.spaces import Discrete

from rllib_compat import registry
from rllib_compat.config import Era, defaults, translate
from rllib_compat.config.steps import FIRST, STEPS
from rllib_compat.config.steps.step import COMPUTED, SettingsView, Step
from rllib_compat.neutral.report import Severity
from rllib_compat.ray_versions import configs

ROWS = (*FIRST, *STEPS)
APPLY = Step.apply


@pytest.fixture
def recorded(monkeypatch):
    """What each step changed: (step, settings before, settings after)."""
    changes = []

    def apply(step, settings_, context):
        before = dict(settings_)
        APPLY(step, settings_, context)
        changes.append((step, before, dict(settings_)))

    monkeypatch.setattr(Step, "apply", apply)
    return changes


CASES = [
    ({"rollout_fragment_length": 200, "num_workers": 32, "train_batch_size": 4000}, "PPO"),
    ({"train_batch_size": 100}, "PPO"),
    ({"num_gpus": 2, "sgd_minibatch_size": 16, "model": {"use_lstm": True}}, "PPO"),
    ({"num_workers": 4, "num_envs_per_worker": 2, "num_gpus": 1}, "DDPPO"),
    ({"num_workers": 2}, "A3C"),
    ({"n_step": 3, "rollout_fragment_length": 1}, "DQN"),
    ({"buffer_size": 100, "prioritized_replay": False, "prioritized_replay_alpha": 0.5}, "DQN"),
    ({}, "SimpleQ"),
    ({}, "IMPALA"),
    ({"num_learners": 1, "num_gpus_per_learner": 1}, "APPO"),
    ({"multiagent": {"policies": {"a": (None, None, None, {})}}}, "SAC"),
    ({"input": "/tmp/x", "env": "CartPole-v1", "min_sample_timesteps_per_iteration": 5}, "CQL"),
    ({"replay_buffer_config": {"type": "PrioritizedEpisodeReplayBuffer"}}, "DQN"),
    ({"input": "/tmp/x", "env": "CartPole-v1", "num_workers": 2}, "MARWIL"),
    ({"output": "/tmp/x", "output_compress_columns": ["obs"]}, "PPO"),
    ({"output": "/tmp/x", "output_max_rows_per_file": 5}, "PPO"),
    ({"env": "PongNoFrameskip-v4"}, "PPO"),
    ({"env": "CartPole-v1", "action_space": Discrete(2)}, "PPO"),
    ({"framework": "tf"}, "DQN"),
    ({"evaluation_parallel_to_training": True, "evaluation_duration": "auto"}, "PPO"),
    ({"model": {"use_lstm": True, "lstm_use_prev_reward": True}}, "PPO"),
    ({"model": {"use_lstm": True, "lstm_use_prev_reward": True}}, "MARWIL"),
    ({"burn_in": 20, "model": {"use_lstm": True}}, "R2D2"),
    ({"env_task_fn": max}, "PPO"),
    ({"multiagent": {"policies": {"a": (None,) * 4}}, "action_space": Discrete(2)}, "PPO"),
    ({"soft_q": True}, "DQN"),
    ({"exploration_config": {"type": "Curiosity"}}, "PG"),
    ({"parameter_noise": True}, "DQN"),
    ({"num_gpus": 2}, "R2D2"),
    ({"remote_worker_envs": True}, "QMIX"),
]


@pytest.mark.parametrize("stack", ["new", "old"])
@pytest.mark.parametrize(("config", "algorithm"), CASES)
def test_a_step_sets_what_its_row_declares(config, algorithm, stack, recorded):
    translate(config, algorithm=algorithm, api_stack=stack)
    assert [step for step, _, _ in recorded] == list(ROWS)
    for step, before, after in recorded:
        changed = {n for n in {*before, *after} if before.get(n, ...) is not after.get(n, ...)}
        for name in changed:
            section = name.rpartition(".")[0]
            declared = step.sets.get(name, step.sets.get(section))
            assert name in step.sets or step.sets.get(section) is COMPUTED, (step.name, name)
            if declared is not COMPUTED and name in after:
                assert after[name] == declared, step.name


def test_the_cases_reach_every_step_but_those_of_other_rays(recorded):
    for config, algorithm in CASES:
        for stack in ("new", "old"):
            translate(config, algorithm=algorithm, api_stack=stack, legacy_ray=Era(None))
    idle = {step.name for step in ROWS} - {step.name for step, a, b in recorded if a != b}
    of_learners = "gpu_learner" if configs.learns_in_its_process() else "learner"
    if not configs.has_setting("env_runners.use_env_runner_state_server"):
        idle -= {"state_server"}
    others = {"many_agents", "replay_weights", "fragment_of_the_batch"}
    assert idle <= {*others, "exploration_config", of_learners}


def test_a_step_that_reads_what_it_does_not_declare_is_found():
    step = Step("x", "", sets={}, reads=("a.b", "c"), change=lambda g, _: g.get("a.x"))
    read = SettingsView({"a.b": 1, "c.d": 2}, step.reads, "PPO")
    assert (read.get("a.b"), read.get("c.d")) == (1, 2)
    with pytest.raises(KeyError, match=r"reads a\.x"):
        read.get("a.x")


def test_todays_defaults_are_those_of_the_installed_ray():
    from rllib_compat.registry import keys

    defaults._installed.cache_clear()
    assert defaults._installed() in keys.versions()
    for row in registry.todays():
        known, value = defaults.todays_default(row.name, "training.gamma")
        assert known
        assert 0 < value < 1


@pytest.mark.parametrize("ray", [None, "0.8.5", "1.13.0"])
def test_an_iteration_of_impala_waits_for_a_sample_whatever_the_old_default_was(ray):
    translation = translate({}, algorithm="IMPALA", legacy_ray=ray)
    assert translation.calls["reporting"]["min_sample_timesteps_per_iteration"] == 1
    told = translate({"timesteps_per_iteration": 70}, algorithm="IMPALA", legacy_ray=ray)
    assert told.calls["reporting"]["min_sample_timesteps_per_iteration"] == 70


def test_a_learner_that_was_asked_for_is_kept_where_the_installed_ray_can():
    config = {"num_learners": 1, "num_gpus_per_learner": 1}
    learners = translate(config, algorithm="APPO").calls["learners"]
    can = configs.learns_in_its_process()
    assert learners == {**config, "num_learners": 1 if can else 0}


@pytest.mark.parametrize(
    "algorithm", ["CRR", "R2D2", "RNNSAC", "ES", "ARS", "BanditLinUCB", "Random"]
)
def test_what_learns_in_one_learner_asks_for_no_other_process_and_says_so(algorithm):
    """Ray waited for the CPUs of two learners, which had nothing to do; bandits refused them."""
    made = translate({"num_gpus": 2}, algorithm=algorithm, legacy_ray=Era(None))
    assert "num_learners" not in made.calls["learners"]
    told = [found.severity for found in made.report.findings if found.rule == "settle.one_learner"]
    assert told == [Severity.WARNING]
