"""What our learners compute is what real old Rays computed, on the same steps and weights.

`tests/legacy/losses/record.py` made the numbers, with Ray 1.13.0 and torch.
"""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.algorithms import LegacyTraining, use_legacy_learners
from rllib_compat.ray_versions import configs, learners, releases
from rllib_compat.ray_versions import episodes as ray_episodes
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close, close_all

RECORDS = Path(__file__).parents[2] / "legacy" / "losses" / "1.13.0"
CASES = sorted(path.stem for path in RECORDS.glob("*.npz") if path.stem[:3] in ("a2c", "pg-"))
MODULE = "default_policy"

pytestmark = OTHERS_WARNINGS

#: The old names of layers → today's, where actor and critic share them, and where they do not.
SHARED = {
    "_hidden_layers.0._model.0": "encoder.encoder.net.mlp.0",
    "_hidden_layers.1._model.0": "encoder.encoder.net.mlp.2",
}
SEPARATE = {
    "_hidden_layers.0._model.0": "encoder.actor_encoder.net.mlp.0",
    "_hidden_layers.1._model.0": "encoder.actor_encoder.net.mlp.2",
    "_value_branch_separate.0._model.0": "encoder.critic_encoder.net.mlp.0",
    "_value_branch_separate.1._model.0": "encoder.critic_encoder.net.mlp.2",
}
HEADS = {"_logits._model.0": "pi.net.mlp.0", "_value_branch._model.0": "vf.net.mlp.0"}
LSTM = {
    "fcnet_hiddens": [8],
    "fcnet_activation": "tanh",
    "vf_share_layers": True,
    "use_lstm": True,
    "lstm_cell_size": 6,
    "max_seq_len": 5,
}
#: The old names of the layers with an LSTM → today's.
OF_LSTM = {
    "_hidden_layers.0._model.0": "encoder.encoder.tokenizer.net.mlp.0",
    "lstm": "encoder.encoder.lstm",
    "_logits_branch._model.0": "pi.net.mlp.0",
    "_value_branch._model.0": "vf.net.mlp.0",
}


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(RECORDS / f"{case}.npz")
        separate = any("_value_branch_separate" in name for name in self.found)
        self.separate = separate
        self.recurrent = case.endswith("lstm")
        self.layers = OF_LSTM if self.recurrent else HEADS | (SEPARATE if separate else SHARED)
        self.algorithm = case.partition("-")[0].upper()
        self.settings = {n: v.item() for n, v in self.below("config").items()}

    def arrays(self, kind):
        """Weights or gradients by today's names."""
        found = {}
        for name, array in self.below(kind).items():
            layer, _, part = name.rpartition(".")
            found[f"{self.layers[layer]}.{part}"] = array
        return found

    def action_space(self):
        actions = self.chunks()[0]["actions"]
        if actions.ndim == 1:
            return gymnasium.spaces.Discrete(3)
        return gymnasium.spaces.Box(-1.0, 1.0, actions.shape[1:], np.float32)


def config_of(recorded, algorithm=None, **more):
    given = {"lambda" if n == "lambda_" else n: v for n, v in recorded.settings.items()}
    if "lambda" in given:
        given["lambda_"] = given.pop("lambda")
    if recorded.algorithm == "A2C":
        given.setdefault("grad_clip", None)
    config = configs.todays_config(algorithm or recorded.algorithm)
    config.training(**given, **more)
    layers = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh"}
    layers["vf_share_layers"] = not recorded.separate
    return config.rl_module(model_config=LSTM if recorded.recurrent else layers)


def local_learner(recorded, **more):
    """A learner with the recorded weights."""
    spaces = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), recorded.action_space())
    learner = config_of(recorded, **more).build_learner(spaces={MODULE: spaces})
    state = learner.module[MODULE].get_state()
    assert state.keys() >= recorded.arrays("weights").keys()
    learner.module[MODULE].set_state({**state, **recorded.arrays("weights")})
    return learner


def episodes_of(chunks):
    made = [
        SingleAgentEpisode(
            observations=list(chunk["obs"]),
            actions=list(chunk["actions"]),
            rewards=[float(reward) for reward in chunk["rewards"]],
            extra_model_outputs=states_of(chunk),
            terminated=bool(chunk["done"]),
            len_lookback_buffer=0,
        )
        for chunk in chunks
    ]
    return [ray_episodes.to_numpy(episode) for episode in made]


def states_of(chunk):
    """The states of a recurrent policy after each step of a chunk, which has one layer."""
    if "state_out_0" not in chunk:
        return {}
    both = zip(chunk["state_out_0"], chunk["state_out_1"], strict=True)
    return {"state_out": [{"h": h[None], "c": c[None]} for h, c in both]}


def updated(learner, chunks):
    """Updates a learner; returns what its loss and its gradients were."""
    return updating(learner, episodes_of(chunks))


def updating(learner, episodes):
    """The same for episodes."""
    seen = {}
    losses, gradients = learner.compute_losses, learner.compute_gradients

    def see_losses(*, fwd_out, batch):
        seen["batch"] = dict(batch[MODULE].items())
        seen["loss"] = losses(fwd_out=fwd_out, batch=batch)
        return seen["loss"]

    def see_gradients(loss):
        names = {parameter: name for name, parameter in learner.module[MODULE].named_parameters()}
        made = gradients(loss)
        seen["gradients"] = {names[p]: g.numpy().copy() for p, g in made.items() if g is not None}
        return made

    learner.compute_losses, learner.compute_gradients = see_losses, see_gradients
    update = "update" if releases.at_least("2.44") else "update_from_episodes"
    seen["results"] = getattr(learner, update)(
        episodes=episodes, timesteps={"num_env_steps_sampled_lifetime": 0}
    )
    return seen


@pytest.mark.parametrize("case", CASES)
def test_advantages_loss_and_gradients_are_those_of_ray_1_13(case):
    recorded = Recorded(case)
    seen = updated(local_learner(recorded), recorded.chunks())
    valid = seen["batch"].get("loss_mask", ...)
    for column in ("advantages", "value_targets"):
        theirs = np.concatenate([chunk[column] for chunk in recorded.chunks()])
        if column == "advantages" or recorded.algorithm == "A2C":
            close(seen["batch"][column][valid].numpy(), theirs, 1e-5)
    close(float(seen["loss"][MODULE]), recorded.found["loss.total"], 1e-5)
    theirs = recorded.arrays("gradients")
    for name, gradient in seen["gradients"].items():
        close(gradient, theirs.get(name, np.zeros_like(gradient)), 1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("lstm")])
def test_batches_of_whole_episodes_are_those_of_rays_connectors(case):
    learner = local_learner(Recorded(case))
    direct = learner._learner_connector
    chunks = [episodes_of(Recorded(case).chunks()) for _ in range(2)]
    assert ray_episodes.columns_with_last_values(chunks[0]) is not None
    more = {"rl_module": learner.module, "shared_data": {}, "metrics": learner.metrics}
    mine = direct(batch={}, episodes=chunks[0], **more)[MODULE]
    rays = direct._pipeline(batch={}, episodes=chunks[1], **more)[MODULE]
    flags = set() if releases.at_least("2.60") else {"terminateds", "truncateds"}
    assert mine.keys() == rays.keys() - {"infos", "loss_mask"}
    for name in mine.keys() - flags:
        torch.testing.assert_close(mine[name], rays[name][rays["loss_mask"]], rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES)
def test_one_update_gives_the_weights_that_ray_1_13_had_after_it(case):
    recorded = Recorded(case)
    learner = local_learner(recorded)
    updated(learner, recorded.chunks())
    state = learner.module[MODULE].get_state()
    for name, theirs in recorded.arrays("after").items():
        close(state[name], theirs, 1e-4)
        if name in recorded.arrays("gradients"):
            assert np.abs(theirs - recorded.arrays("weights")[name]).max() > 1e-5


def test_until_ray_1_1_a_critic_says_what_follows_a_fragment_without_gae_too():
    """Those Rays gave `compute_advantages` the value of what was observed last."""
    recorded, made = Recorded("a2c-without-gae"), {}
    spaces = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), recorded.action_space())
    for ray in ("1.1.0", "1.2.0"):
        config = config_of(recorded)
        use_legacy_learners(config, LegacyTraining.of_release(ray, "torch", simple_optimizer=False))
        learner = config.build_learner(spaces={MODULE: spaces})
        module = learner.module[MODULE].unwrapped()
        module.set_state({**module.get_state(), **recorded.arrays("weights")})
        ends = [torch.as_tensor(chunk["obs"][-1:]) for chunk in recorded.chunks()]
        with torch.no_grad():
            values = [float(module.compute_values({"obs": end})) for end in ends]
        made[ray] = updated(learner, recorded.chunks())["batch"]["value_targets"].numpy()
    begin, gamma = 0, recorded.settings["gamma"]
    for chunk, value in zip(recorded.chunks(), values, strict=True):
        end = begin + len(chunk["rewards"])
        expected = (not chunk["done"]) * value * gamma ** np.arange(end - begin, 0, -1.0)
        close(made["1.1.0"][begin:end] - made["1.2.0"][begin:end], expected, 1e-5)
        begin = end


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("a2c")])
def test_gradients_that_an_a3c_worker_sends_are_applied_as_ray_1_13_applied_its_own(case):
    recorded = Recorded(case)
    worker, center = (local_learner(recorded, algorithm="A3C") for _ in range(2))
    steps = {"num_env_steps_sampled_lifetime": 0}
    gradients, _ = worker.compute_fragment_gradients(episodes_of(recorded.chunks()), steps)
    theirs = recorded.arrays("gradients")
    norm = np.sqrt(sum((array**2).sum() for array in theirs.values()))
    clipping = min(1.0, recorded.settings.get("grad_clip", norm) / norm)
    for (_, name), gradient in gradients.items():
        close(gradient, clipping * theirs.get(name, np.zeros_like(gradient)), 1e-5)
    for name, weights in worker.module[MODULE].get_state().items():
        np.testing.assert_array_equal(weights, center.module[MODULE].get_state()[name])
    learners.apply_gradients(center, gradients, steps)
    close_all(center.module[MODULE].get_state(), recorded.arrays("after"), 1e-4)
