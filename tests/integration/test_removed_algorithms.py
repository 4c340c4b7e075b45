"""Algorithms that Ray removed train again, from old configs, and are saved and restored."""

import gymnasium
import numpy as np
import pytest
import tree
from gymnasium.spaces import MultiDiscrete
from ray.rllib.env.multi_agent_env import MultiAgentEnv

import rllib_compat as compat
from rllib_compat import Given, convert
from rllib_compat.conversion import Form, prepare
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModelSettings, plan_optimizers, read
from rllib_compat.ray_versions import learners
from tests.legacy.cases import MUSEUM, find
from tests.marks import TRAINERS, marked
from tests.unit.offline.test_recordings import played, record

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]


class Arms(gymnasium.Env):
    """Each step is an episode; the second arm is always the best."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, config=None):
        self.random = np.random.RandomState(7)

    def seen(self):
        return self.random.uniform(-1, 1, 2).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        return self.seen(), {}

    def step(self, action):
        return self.seen(), float(action == 1), True, False, {"regret": float(action != 1)}


#: What those learn from that replay sequences.
SEQUENCES = {
    "burn_in": 2,
    "zero_init_states": False,
    "prioritized_replay": True,
    "learning_starts": 40,
    "train_batch_size": 24,
    "timesteps_per_iteration": 80,
    "min_iter_time_s": 0,
}

OLD = {
    "A2C": {
        "num_workers": 1,
        "train_batch_size": 80,
        "microbatch_size": 40,
        "rollout_fragment_length": 20,
        "entropy_coeff_schedule": [[0, 0.01], [1000, 0.0]],
        "model": {"use_lstm": True, "lstm_cell_size": 8, "fcnet_hiddens": [8]},
        "min_iter_time_s": 0,
    },
    "A3C": {"num_workers": 0, "timesteps_per_iteration": 80, "min_iter_time_s": 0},
    "ARS": {
        "num_workers": 0,
        "num_rollouts": 20,
        "rollouts_used": 10,
        "eval_prob": 0.5,
        "noise_size": 10_000,
        "model": {"fcnet_hiddens": []},
    },
    "BanditLinUCB": {"env": Arms, "model": {"alpha": 0.5}},
    "DDPPO": {"num_workers": 0, "rollout_fragment_length": 20, "num_gpus_per_worker": 0},
    "ES": {
        "num_workers": 1,
        "train_batch_size": 80,
        "episodes_per_batch": 4,
        "eval_prob": 0.5,
        "noise_size": 10_000,
        "model": {"fcnet_hiddens": [8]},
    },
    "PG": {"num_workers": 0, "model": {"fcnet_hiddens": [8]}},
    "R2D2": {
        "num_workers": 1,
        **SEQUENCES,
        "hiddens": [6],
        "model": {"fcnet_hiddens": [8], "use_lstm": True, "lstm_cell_size": 8, "max_seq_len": 4},
    },
    "RNNSAC": {
        "env": "Pendulum-v1",
        "horizon": 20,
        **SEQUENCES,
        "model": {"max_seq_len": 4},
        "policy_model": {"fcnet_hiddens": [8], "use_lstm": True, "lstm_cell_size": 8},
        "Q_model": {"fcnet_hiddens": [8], "use_lstm": True, "lstm_cell_size": 8},
    },
    "Random": {"num_workers": 1, "rollouts_per_iteration": 20},
    "TD3": {
        "env": "Pendulum-v1",
        "horizon": 20,
        "num_workers": 1,
        "learning_starts": 30,
        "train_batch_size": 8,
        "actor_hiddens": [8],
        "critic_hiddens": [8],
        "n_step": 2,
        "prioritized_replay": True,
        "store_buffer_in_checkpoints": True,
        "exploration_config": {"random_timesteps": 40},
        "timesteps_per_iteration": 80,
        "min_iter_time_s": 0,
    },
}
#: What builds on most of Ray; a push runs the others on the newest alone.
ON_EACH_RAY = {"A2C", "BanditLinUCB", "DDPPO", "R2D2", "TD3"}
STATS = {
    "A2C": {"policy_loss", "cur_lr", "vf_loss", "policy_entropy", "entropy_coeff"},
    "A3C": {"policy_loss", "cur_lr", "vf_loss", "policy_entropy", "entropy_coeff"},
    "BanditLinUCB": {"cumulative_regret"},
    "DDPPO": {"policy_loss", "cur_lr", "vf_loss", "kl", "entropy"},
    "PG": {"policy_loss", "cur_lr"},
    "R2D2": {"total_loss", "mean_q", "max_q", "min_q", "mean_td_error"},
    "RNNSAC": {"actor_loss", "critic_loss", "alpha_loss", "alpha_value", "mean_q"},
    "Random": set(),
    "TD3": {"actor_loss", "critic_loss", "mean_q", "max_q", "min_q", "mean_td_error"},
}


#: Trained elsewhere on each push: in `test_restored_removed` and, A3C, in `test_local_learners`.
ELSEWHERE = ("A3C", "ES", "RNNSAC")
HERE = [name for name in OLD if name not in ELSEWHERE]


@pytest.mark.parametrize(
    "name", [*marked(HERE, ON_EACH_RAY, pytest.mark.newest), *marked(ELSEWHERE, ())]
)
def test_an_old_config_trains_with_the_old_result_keys_and_goes_on_from_its_checkpoint(
    name, make, load, tmp_path
):
    trainer = make(f"{name}Trainer", config={"env": "CartPole-v1", **OLD[name]})
    before = trainer.get_weights()["default_policy"]
    result = trainer.train()
    assert result["timesteps_total"] >= 80
    assert result["episode_reward_mean"] != 0
    learner = result["info"]["learner"].get("default_policy", {})
    stats = learner.get("learner_stats", {})
    if name in ("ES", "ARS"):
        assert {"update_ratio", "weights_norm", "grad_norm"} <= result["info"].keys()
        assert result["info"]["episodes_so_far"] == result["episodes_total"] > 0
    else:
        assert STATS[name] <= stats.keys()
        assert result["num_agent_steps_trained"] > 0 or name == "Random"
    after = trainer.get_weights()["default_policy"]
    learned = any((after[part] != before[part]).any() for part in before)
    assert learned == (name != "Random")
    path = trainer.save(str(tmp_path))
    replayed = getattr(trainer.algorithm, "replay", None)
    replayed = replayed and replayed.get_state()
    trainer.restore(path)
    assert trainer.train()["timesteps_total"] > result["timesteps_total"]
    algorithm = load(path)
    assert type(algorithm).__name__ == name
    assert (replayed is not None) == (name == "TD3")
    if replayed is not None:
        tree.map_structure(np.testing.assert_array_equal, algorithm.replay.get_state(), replayed)
    assert algorithm.train()["num_env_steps_sampled_lifetime"] > result["timesteps_total"]


class TwoStepGame(MultiAgentEnv):
    """The old environment of QMIX's examples: the first agent says which game both play then."""

    def __init__(self):
        super().__init__()
        parts = {"obs": MultiDiscrete([2, 2, 2, 3]), "state": MultiDiscrete([2, 2, 2])}
        self.observation_space = gymnasium.spaces.Dict(parts)
        self.action_space = gymnasium.spaces.Discrete(2)

    def seen(self):
        return {agent: {"obs": np.append(self.at, agent + 1), "state": self.at} for agent in (0, 1)}

    def reset(self):
        self.at = np.array([1, 0, 0])
        return self.seen()

    def step(self, actions):
        done = not self.at[0]
        total = 7 if self.at[1] else [[0, 1], [1, 8]][actions[0]][actions[1]]
        if not done:
            self.at, total = np.eye(3, dtype=int)[1 + actions[0]], 0
        return self.seen(), {0: total / 2, 1: total / 2}, {"__all__": done}, {}


def grouped(_):
    game = TwoStepGame()
    tuples = [gymnasium.spaces.Tuple([s] * 2) for s in (game.observation_space, game.action_space)]
    return game.with_agent_groups({"both": [0, 1]}, obs_space=tuples[0], act_space=tuples[1])


def test_qmix_goes_on_from_an_old_checkpoint_and_from_its_own(make, load, tmp_path):
    compat.tune.register_env("grouped_two_step_game", grouped)
    old = {
        "env": "grouped_two_step_game",
        "num_workers": 0,
        "learning_starts": 20,
        "target_network_update_freq": 40,
        "timesteps_per_iteration": 60,
        "min_iter_time_s": 0,
        "mixing_embed_dim": 6,
        "model": {"lstm_cell_size": 8},
    }
    (file,) = MUSEUM.glob("groups/qmix-torch-default/ckpt/*/checkpoint-2")
    ((_, stored),) = read_checkpoint(file).policies.items()
    trainer = make("QMixTrainer", config=old)
    trainer.restore(str(file))
    ((name, before),) = trainer.get_weights().items()
    network = read(stored, ModelSettings(algorithm="QMIX")).network
    for part, array in network.module_state().items():
        if part in before:
            np.testing.assert_array_equal(before[part], array)
    result = trainer.train()
    assert result["training_iteration"] == 3
    assert result["timesteps_total"] >= 260
    assert 0 < result["episode_reward_mean"] <= 8
    told = result["info"]["learner"][name]["learner_stats"]
    assert {"loss", "td_error_abs", "q_taken_mean", "target_mean"} <= told.keys()
    after = trainer.get_weights()[name]
    for part in before:
        assert (after[part] != before[part]).any(), part
    path = trainer.save(str(tmp_path))
    trainer.restore(path)
    assert trainer.train()["timesteps_total"] > result["timesteps_total"]
    algorithm = load(path)
    assert type(algorithm).__name__ == "QMIX"
    optimizer = learners.local_learner(algorithm).get_optimizer(name)
    assert all(slot["step"] > 0 for slot in optimizer.state.values())


class TwoStepGameOfVectors(TwoStepGame):
    """MADDPG's actions are vectors; the old environment draws one of two by them."""

    def __init__(self, config):
        super().__init__()

    def step(self, actions):
        return super().step({agent: np.random.choice(2, p=p) for agent, p in actions.items()})


def test_an_old_config_of_maddpg_trains_all_agents_and_goes_on_from_its_checkpoint(
    make, load, tmp_path
):
    old = {
        "env": TwoStepGameOfVectors,
        "num_workers": 0,
        "learning_starts": 20,
        "rollout_fragment_length": 10,
        "timesteps_per_iteration": 60,
        "train_batch_size": 16,
        "actor_hiddens": [8],
        "multiagent": {
            "policies": {
                "p0": (None, None, None, {"agent_id": 0}),
                "p1": (None, None, None, {"agent_id": 1, "use_local_critic": True}),
            },
            "policy_mapping_fn": lambda agent: f"p{agent}",
        },
    }
    trainer = make("MADDPGTrainer", config=old)
    before = trainer.get_weights()
    result = trainer.train()
    assert result["timesteps_total"] >= 60
    assert 0 < result["episode_reward_mean"] <= 8
    after = trainer.get_weights()
    for name, inputs in {"p0": 2 * (15 + 2), "p1": 15 + 2}.items():
        told = result["info"]["learner"][name]["learner_stats"]
        assert {"actor_loss", "critic_loss", "mean_q", "mean_td_error"} <= told.keys()
        assert after[name]["net.critic.0.weight"].shape[1] == inputs
        for part in before[name]:
            assert (after[name][part] != before[name][part]).any(), part
    path = trainer.save(str(tmp_path))
    trainer.restore(path)
    assert trainer.train()["timesteps_total"] > result["timesteps_total"]
    algorithm = load(path)
    assert type(algorithm).__name__ == "MADDPG"
    for part in ("actor", "critic"):
        optimizer = learners.local_learner(algorithm).get_optimizer("p1", part)
        assert all(slot["step"] > 0 for slot in optimizer.state.values())


@pytest.mark.newest
def test_an_old_config_of_crr_learns_from_old_recordings_and_is_restored(make, load, tmp_path):
    (tmp_path / "recorded").mkdir()
    episodes = [played(30, end="terminated", id_=str(i)) for i in range(4)]
    for episode in episodes:  # of two numbers; CartPole has four
        episode.observations.data = np.tile(episode.observations.data, 2)
    record(tmp_path / "recorded", episodes)
    old = {
        "env": "CartPole-v1",
        "input": str(tmp_path / "recorded"),
        "num_workers": 0,
        "train_batch_size": 32,
        "target_network_update_freq": 64,
        "actor_hiddens": [32],  # of 8 units, all may do nothing by chance, and learn nothing
        "critic_hiddens": [32],
        "weight_type": "exp",
        "min_time_s_per_iteration": 0,
    }
    trainer = make("CRRTrainer", config=old)
    before = trainer.get_weights()["default_policy"]
    for _ in range(2):
        result = trainer.train()
    stats = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert {"loss_actor", "loss_critic", "weights_avg", "targets_avg"} <= stats.keys()
    after = trainer.get_weights()["default_policy"]
    for part in before:
        assert (after[part] != before[part]).any()
    path = trainer.save(str(tmp_path / "saved"))
    trainer.restore(path)
    assert trainer.train()["training_iteration"] == 3
    algorithm = load(path)
    assert type(algorithm).__name__ == "CRR"
    optimizer = learners.local_learner(algorithm).get_optimizer("default_policy", "critic")
    assert {int(slot["step"]) for slot in optimizer.state.values()} == {2}


def test_a_td3_checkpoint_trains_on_with_its_targets_and_both_optimizers(load, tmp_path):
    (case,) = find(ray="2.0.1", algorithm="TD3")
    sooner = {
        "num_steps_sampled_before_learning_starts": 20,
        "min_sample_timesteps_per_iteration": 40,
    }
    given = Given(algorithm="TD3", env=case.about["env"], overrides=sooner)
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=5)
    steps = done.checkpoint.counters.env_steps
    algorithm = load(tmp_path / "new")
    assert algorithm.config.num_steps_sampled_before_learning_starts == steps + 20
    learner = learners.local_learner(algorithm)
    network = done.networks["default_policy"]
    states = plan_optimizers(done.checkpoint.policies, done.networks)[0]["default_policy"]
    for name, state in states.items():
        optimizer = learner.get_optimizer("default_policy", name)
        assert {int(slot["step"]) for slot in optimizer.state.values()} == {state.step}
    before = learner.module["default_policy"].get_state()
    for name, array in network.module_state().items():
        np.testing.assert_array_equal(before[name], array)
    for _ in range(2):  # Ray 2.40 counts the old steps as those of the first iteration
        algorithm.train()
    after = learner.module["default_policy"].get_state()
    for name in ("net.pi.out.kernel", "net.q.out.kernel", "target_net.twin_q.out.kernel"):
        assert (after[name] != before[name]).any()
    critic = learner.get_optimizer("default_policy", "critic")
    assert min(slot["step"] for slot in critic.state.values()) > states["critic"].step
    algorithm.save_to_path(str(tmp_path / "saved"))
    again = prepare(read_checkpoint(tmp_path / "saved"), Given())
    assert again.form is Form.ALGORITHM
    read_again, _ = plan_optimizers(again.checkpoint.policies, again.networks)
    assert read_again["default_policy"]["critic"].step > states["critic"].step
