"""Records what RNNSAC's losses of an old Ray were, on fixed sequences with fixed weights.

Usage: `python record_rnnsac.py OUT`, with the Python of an environment that has Ray 1.13.0 and
torch (it runs on Python 3.8). It writes `OUT/<case>.npz`, which
`tests/unit/algorithms/test_rnnsac.py` compares. A case holds, by name:

    config.*            the settings that matter, as the old Ray knew them, as text
    batch.*             sequences as they came out of a replay buffer, `[B, T, …]`, padded with
                        zeros: obs, new_obs, actions, rewards, dones, weights; `state_in_0` … (two
                        for each network: policy, critic, twin) `[B, …]`, and `seq_lens` `[B]`
    weights.*, targets.*    before, by the old names
    loss.*              actor_loss, critic_loss (the mean of both critics'), alpha_loss
    td_errors           one a sequence
    gradients.*         of each network's own loss, before any clipping, by the old names
    after.*             the weights after one `learn_on_batch`
    target_after.*      the targets when they have followed

Box actions: this Ray's code failed wherever it met them. It asked critics for values without
actions when it acted, did not unpack what a target critic gave, and kept the actions of the batch
beside the observations when it judged the policy's own. `Repaired` does these three things right,
and nothing else. Actions are not drawn: each is `NOISE` standard deviations above its mean.
"""

from unittest import mock

import gym
import numpy as np
import torch
from ray.rllib.agents.sac import rnnsac_torch_policy
from ray.rllib.agents.sac.rnnsac import DEFAULT_CONFIG
from ray.rllib.agents.sac.rnnsac_torch_model import RNNSACTorchModel
from ray.rllib.agents.sac.rnnsac_torch_policy import RNNSACTorchPolicy, actor_critic_loss
from recording import draw_weights, flat, gradients_of, named, pad, record_all

SEEN, CELLS, STEPS, NOISE = 4, 5, 6, 0.7
DISCRETE, BOX = gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

CASES = {
    "discrete": (DISCRETE, {"n_step": 2, "grad_clip": 0.5}),
    "discrete-single": (DISCRETE, {"twin_q": False, "burn_in": 2, "initial_alpha": 0.3}),
    "box": (BOX, {"burn_in": 1, "gamma": 0.9}),
    "box-single": (BOX, {"twin_q": False, "target_entropy": -0.5, "grad_clip": 1.0}),
}
KEPT = "burn_in gamma grad_clip initial_alpha n_step target_entropy tau twin_q"

#: The steps of each sequence, and whether its episode ended with it.
SEQUENCES = ((6, False), (6, True), (4, True), (3, True))


class Repaired(RNNSACTorchModel):
    """What the docstring above says."""

    def _get_q_value(self, model_out, actions, net, state_in, seq_lens):
        if not self.discrete and actions is None:
            actions = torch.zeros(model_out["obs"].shape[0], BOX.shape[0])
        return super()._get_q_value(dict(model_out), actions, net, state_in, seq_lens)

    def get_q_values(self, *arguments):
        found = super().get_q_values(*arguments)
        return found[0] if "target" in self.name and not self.discrete else found


def not_drawn(normal, sample_shape=()):
    """In the place of `Normal.rsample`."""
    return normal.loc + NOISE * normal.scale


@mock.patch.object(torch.distributions.Normal, "rsample", not_drawn)
@mock.patch.object(rnnsac_torch_policy, "RNNSACTorchModel", Repaired)
def record(case):
    """Records one case."""
    space, settings = CASES[case]
    config = dict(DEFAULT_CONFIG, framework="torch", num_gpus=0, num_workers=0, tau=0.3)
    config.update(settings)
    model = {"use_lstm": True, "lstm_cell_size": CELLS}
    model.update(fcnet_hiddens=[7], fcnet_activation="tanh")
    for part in ("policy_model", "Q_model"):
        config[part] = dict(config[part], **model)
    rates = {"actor": 0.01, "critic": 0.02, "entropy": 0.03}
    config["optimization"] = {n + "_learning_rate": rate for n, rate in rates.items()}
    config["model"] = dict(config["model"], max_seq_len=STEPS - config["burn_in"])
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    policy = RNNSACTorchPolicy(gym.spaces.Box(-2.0, 2.0, (SEEN,), np.float32), space, config)
    target = policy.target_models[policy.model]
    draw_weights(random, policy.model, target)
    found = {"config." + name: np.asarray(repr(config[name])) for name in KEPT.split()}
    found.update(named("weights", policy.get_weights()))
    found.update(named("targets", target.state_dict()))
    batch = made_up(random, space, config)
    found.update(named("batch", batch))
    found.update(learned(policy, batch, config))
    policy.update_target()
    found.update(named("target_after", target.state_dict()))
    return found


def made_up(random, space, config):
    """Sequences, padded."""
    count = len(SEQUENCES)
    shape = (count, STEPS)
    if isinstance(space, gym.spaces.Discrete):
        actions = random.randint(0, space.n, shape)
    else:
        actions = random.uniform(-0.9, 0.9, shape + space.shape).astype(np.float32)
    batch = {
        "obs": random.uniform(-2, 2, (*shape, SEEN)).astype(np.float32),
        "new_obs": random.uniform(-2, 2, (*shape, SEEN)).astype(np.float32),
        "actions": actions,
        "rewards": random.uniform(-3, 6, shape).astype(np.float32),
        "dones": np.zeros(shape, bool),
        "weights": random.uniform(0.2, 1, (count, 1)).repeat(STEPS, 1).astype(np.float32),
    }
    for index in range(2 * (3 if config["twin_q"] else 2)):
        state = random.uniform(-1, 1, (count, CELLS))
        batch["state_in_" + str(index)] = state.astype(np.float32)
    return pad(batch, SEQUENCES)


def taken(batch):
    """A batch as the old policies took it."""
    before = {"prev_" + name: np.zeros_like(batch[name]) for name in ("actions", "rewards")}
    return flat(dict(batch, **before))


def learned(policy, batch, config):
    """What the losses of a batch are, and what one update makes of the weights."""
    model = policy.model
    losses = actor_critic_loss(policy, model, None, policy._lazy_tensor_dict(taken(batch)))
    critics = losses[1:-1]
    found = {
        "loss.actor_loss": losses[0].item(),
        "loss.critic_loss": sum(loss.item() for loss in critics) / len(critics),
        "loss.alpha_loss": losses[-1].item(),
        "td_errors": model.tower_stats["td_error"].detach().numpy().copy(),
    }
    parts = ["action_model", "q_net", *["twin_q_net"][: len(critics) - 1], "log_alpha"]
    for part, loss in zip(parts, losses):  # noqa: B905 - Python 3.8
        weights = [w for n, w in model.named_parameters() if n.split(".")[0] == part]
        found.update(gradients_of(loss, model, weights))
    policy.learn_on_batch(taken(batch))
    found.update(named("after", policy.get_weights()))
    return found


if __name__ == "__main__":
    record_all(record, CASES)
