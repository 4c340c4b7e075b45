"""What the learner of MADDPG computes is what a real old Ray computed; steps of all agents, replay.

`tests/legacy/losses/record_maddpg.py` made the numbers, with Ray 1.13.0 and TensorFlow.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from rllib_compat.algorithms.maddpg import JointReplayBuffer, _batches, joint_steps
from rllib_compat.algorithms.transitions import N_STEP, n_step_returns
from rllib_compat.errors import ConfigError, LegacyEnvError
from rllib_compat.networks.modules import critics
from rllib_compat.ray_versions import configs, releases
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close, close_all, literal
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "maddpg"
CASES = sorted(path.stem for path in HERE.glob("*.npz"))
NETWORKS = ("actor", "critic", "target_actor", "target_critic")
COLUMNS = {"dones": Columns.TERMINATEDS}
#: What does not differ between policies.
SHARED = ("grad_clip", "gamma")


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        self.agents = sorted({n.split(".")[1] for n in self.found if n.startswith("batch.")})

    def settings(self, agent):
        return {n: literal(text) for n, text in self.below(f"config.{agent}").items()}

    def steps(self):
        return {
            agent: {COLUMNS.get(n, n): column for n, column in self.below(f"batch.{agent}").items()}
            for agent in self.agents
        }

    def arrays(self, kind, agent, networks=NETWORKS):
        """Weights or gradients by the names of our module: Ray numbered layers and their biases."""
        found = {}
        for network in networks:
            target, _, part = network.rpartition("_")
            where = f"{target}_net.{part}" if target else f"net.{part}"
            for number, array in self.below(f"{kind}.{agent}.{network}").items():
                layer, bias = divmod(int(number), 2)
                found[f"{where}.{2 * layer}.{'bias' if bias else 'weight'}"] = array.T
        return found

    def spaces(self, agent):
        batch = self.below(f"batch.{agent}")
        count = batch["actions"].shape[1]
        seen = gymnasium.spaces.Box(-9, 9, batch["obs"].shape[1:], np.float32)
        if agent == "p1":  # both kinds are the same to it
            return seen, gymnasium.spaces.Box(0, 1, (count,), np.float32)
        return seen, gymnasium.spaces.Discrete(count)


def local_learner(recorded, **more):
    """A learner with the recorded weights, also of the targets."""
    config = configs.todays_config("MADDPG")
    every = {agent: recorded.settings(agent) for agent in recorded.agents}
    own = {
        agent: {name: value for name, value in told.items() if name not in SHARED}
        for agent, told in every.items()
    }
    config.training(**{**{name: every["p0"][name] for name in SHARED}, **more})
    config.multi_agent(
        policies=set(recorded.agents),
        policy_mapping_fn=lambda agent, *_, **__: agent,
        algorithm_config_overrides_per_module=own,
    )
    learner = config.build_learner(spaces={a: recorded.spaces(a) for a in recorded.agents})
    for agent in recorded.agents:
        told = recorded.arrays("weights", agent)
        assert learner.module[agent].get_state().keys() == told.keys()
        learner.module[agent].set_state(told)
    return learner


@pytest.fixture
def noise(recorded, monkeypatch):
    """Samples are made of the recorded numbers; a forward pass of the learner asks in order."""
    kept = {}

    def of_module(module, net):
        network = "target_actor" if net is getattr(module, "target_net", None) else "actor"
        uniform = recorded.found[f"uniform.{module.agent}.{network}"]
        kept["now"] = -torch.log(-torch.log(torch.from_numpy(uniform)))

    acting = critics.MADDPGModule._acting

    def fixed(module, net, batch):
        of_module(module, net)
        return acting(module, net, batch)

    monkeypatch.setattr(critics.MADDPGModule, "_acting", fixed)
    monkeypatch.setattr(critics, "_gumbel", lambda _: kept["now"])


def updated(learner, steps):
    """Updates a learner; returns what it told, and its gradients before they are clipped."""
    told, gradients, compute = {}, {}, learner.compute_gradients

    def see(loss):
        made = compute(loss)
        for agent in steps:
            for name, parameter in learner.module[agent].named_parameters():
                if parameter in made:
                    gradients[agent, name] = made[parameter].numpy().copy()
        return made

    def log(values, *, key=None, **_):
        if key:
            told.update({(key, name): float(value) for name, value in values.items()})

    learner.compute_gradients = see
    learner.metrics.log_dict = log
    batches = {agent: SampleBatch(batch) for agent, batch in _batches(steps).items()}
    batch = MultiAgentBatch(batches, len(steps["p0"]["obs"]))
    update = learner.update if releases.at_least("2.44") else learner.update_from_batch
    update(batch=batch, timesteps={"num_env_steps_sampled_lifetime": 0})
    return told, gradients


@pytest.fixture(params=CASES)
def recorded(request):
    return Recorded(request.param)


@pytest.mark.usefixtures("noise")
def test_losses_gradients_and_an_update_are_those_of_ray_1_13(recorded):
    learner = local_learner(recorded)
    told, gradients = updated(learner, recorded.steps())
    for agent in recorded.agents:
        for network in ("actor", "critic"):
            theirs = recorded.found[f"losses.{agent}.{network}"]
            close(told[agent, f"{network}_loss"], theirs, 1e-5)
        theirs = recorded.arrays("gradients", agent, ("actor", "critic"))
        assert {name for a, name in gradients if a == agent} == theirs.keys()
        close_all({n: g for (whose, n), g in gradients.items() if whose == agent}, theirs, 1e-5)
        state, before = learner.module[agent].get_state(), recorded.arrays("weights", agent)
        for name, after in recorded.arrays("after", agent).items():
            close(state[name], after, 1e-4)
            assert np.abs(after - before[name]).max() > 1e-5, name


@pytest.mark.usefixtures("noise")
def test_actions_are_those_of_ray_1_13_whether_it_explores_or_not(recorded):
    learner = local_learner(recorded)
    for agent in recorded.agents:
        module = learner.module[agent].unwrapped()
        batch = recorded.below(f"batch.{agent}")
        for name, forward in (
            ("actor", module.forward_inference),
            ("actor", module.forward_exploration),
        ):
            made = forward({Columns.OBS: torch.from_numpy(batch["obs"])})[Columns.ACTIONS]
            close(made.numpy(), recorded.found[f"sampled.{agent}.{name}"], 1e-5)
        made = module.forward_target({Columns.OBS: torch.from_numpy(batch["new_obs"])})
        theirs = recorded.found[f"sampled.{agent}.target_actor"]
        close(made[Columns.ACTIONS].numpy(), theirs, 1e-5)


def test_an_action_is_drawn_as_often_as_its_probability_says():
    logits = torch.tensor([[0.0, 1.0, 2.0]]).expand(20_000, 3)
    drawn = (logits + critics._gumbel(logits)).argmax(-1).bincount() / 20_000
    close(drawn.numpy(), logits[0].softmax(-1).numpy(), 0.03)


def test_rows_that_look_ahead_are_those_of_ray_1_13():
    recorded = Recorded("local-critic")
    rewards, seen = recorded.found["episode.rewards"], recorded.found["episode.obs"]
    ended = np.array([False] * (len(rewards) - 1) + [True])
    total, last = n_step_returns(rewards, ended, 3, 0.9)
    close(total, recorded.found["steps.rewards"], 1e-6)
    close(seen[last + 1], recorded.found["steps.new_obs"], 1e-6)
    assert ended[last].tolist() == recorded.found["steps.dones"].tolist()


def test_nothing_is_taken_from_behind_an_end():
    total, last = n_step_returns(np.ones(4), np.array([False, True, False, False]), 3, 0.5)
    assert total.tolist() == [1.5, 1, 1.5, 1]
    assert last.tolist() == [1, 1, 3, 3]


def episode(lengths, terminated=True):
    """An episode of agents that are called like their policies; each ends after so many steps."""
    made = MultiAgentEpisode(agent_to_module_mapping_fn=lambda agent, *_: agent)
    made.add_env_reset(observations={agent: np.float32([0]) for agent in lengths}, infos={})
    for step in range(max(lengths.values())):
        acting = [agent for agent, length in lengths.items() if step < length]
        made.add_env_step(
            observations={agent: np.float32([step + 1]) for agent in acting},
            actions={agent: np.float32([step, 1]) for agent in acting},
            rewards=dict.fromkeys(acting, 1.0),
            infos={},
            terminateds={
                "__all__": terminated and step == max(lengths.values()) - 1,
                **{agent: True for agent in acting if terminated and step == lengths[agent] - 1},
            },
        )
    return made


def test_a_row_is_one_step_of_all_agents_and_the_buffer_forgets_the_oldest():
    (steps,) = joint_steps([episode({"a": 5, "b": 5})], 2, 0.5)
    assert steps["a"][Columns.REWARDS].tolist() == [1.5, 1.5, 1.5, 1.5, 1.0]
    assert steps["b"][Columns.TERMINATEDS].tolist() == [False, False, False, True, True]
    assert steps["b"][N_STEP].tolist() == [2, 2, 2, 2, 1]
    (cut,) = joint_steps([episode({"a": 3, "b": 3}, terminated=False)], 1, 0.5)
    assert not cut["a"][Columns.TERMINATEDS].any()
    buffer = JointReplayBuffer(7)
    buffer.add(steps)
    buffer.add(cut)
    assert len(buffer) == 7
    drawn, _, _ = buffer.draw(300)
    for column in (Columns.OBS, Columns.NEXT_OBS, Columns.ACTIONS):
        assert (drawn["a"][column] == drawn["b"][column]).all()
    ours = set(zip(drawn["a"][Columns.OBS][:, 0].tolist(), drawn["a"][N_STEP], strict=True))
    assert ours == {(1, 2), (2, 2), (3, 2), (4, 1), (0, 1), (1, 1), (2, 1)}


def test_agents_that_do_not_act_together_are_refused():
    with pytest.raises(LegacyEnvError, match="acts while another does not"):
        list(joint_steps([episode({"a": 4, "b": 3})], 1, 0.5))
    (one,) = joint_steps([episode({"a": 2})], 1, 0.5)
    (both,) = joint_steps([episode({"a": 2, "b": 2})], 1, 0.5)
    buffer = JointReplayBuffer(7)
    buffer.add(both)
    with pytest.raises(LegacyEnvError, match="not the agents"):
        buffer.add(one)


def test_a_fragment_that_is_too_short_and_spaces_that_do_not_fit_are_refused():
    config = configs.todays_config("MADDPG").training(n_step=5)
    config.env_runners(rollout_fragment_length=4)
    with pytest.raises(ConfigError, match="too short for targets of 5 steps"):
        config.validate()
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    for spaces in ((gymnasium.spaces.Discrete(3), box), (box, gymnasium.spaces.MultiBinary(2))):
        with pytest.raises(ConfigError, match="MADDPG needs"):
            configs.todays_config("MADDPG").build_learner(spaces={"default_policy": spaces})
