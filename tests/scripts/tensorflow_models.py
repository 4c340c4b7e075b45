"""Trains models of TensorFlow as scripts of Ray 1.x did, and says what came of it."""

import json
import sys

import gym
import numpy as np
import ray
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.agents.sac import SACTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.tf.misc import normc_initializer
from ray.rllib.models.tf.recurrent_net import RecurrentNetwork
from ray.rllib.models.tf.tf_action_dist import Categorical
from ray.rllib.models.tf.tf_modelv2 import TFModelV2
from ray.rllib.utils.framework import try_import_tf

tf1, tf, version = try_import_tf()


class Dense(TFModelV2):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, size=8):
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        seen = tf.keras.layers.Input(obs_space.shape)
        start = normc_initializer(1.0)
        hidden = tf.keras.layers.Dense(size, tf.nn.relu, kernel_initializer=start)(seen)
        heads = [tf.keras.layers.Dense(n)(hidden) for n in (num_outputs, 1)]
        self.base_model = tf.keras.Model(seen, heads)
        self.register_variables(self.base_model.variables)

    def forward(self, input_dict, state, seq_lens):
        out, self._value = self.base_model(input_dict["obs"])
        return out, state

    def value_function(self):
        return tf.reshape(self._value, [-1])


class Memory(RecurrentNetwork):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        layers = tf.keras.layers
        seen = layers.Input((None, obs_space.shape[0]))
        states = [layers.Input((6,)), layers.Input((6,))]
        lengths = layers.Input((), dtype=tf.int32)
        features, h, c = layers.LSTM(6, return_sequences=True, return_state=True)(
            seen, mask=tf.sequence_mask(lengths), initial_state=states
        )
        heads = [layers.Dense(n)(features) for n in (num_outputs, 1)]
        self.rnn_model = tf.keras.Model([seen, lengths, *states], [*heads, h, c])
        self.register_variables(self.rnn_model.variables)

    def forward_rnn(self, inputs, state, seq_lens):
        out, self._value, h, c = self.rnn_model([inputs, seq_lens, *state])
        return out, [h, c]

    def get_initial_state(self):
        return [np.zeros(6, np.float32), np.zeros(6, np.float32)]

    def value_function(self):
        return tf.reshape(self._value, [-1])


class Distribution(Categorical):
    pass


def arrays(trainer):
    weights = trainer.get_policy().get_weights()
    return list(weights.values()) if isinstance(weights, dict) else list(weights)


def variables_of_optimizer(policy):
    found = policy.get_state().get("_optimizer_variables") or []
    return [np.array(v) for v in (found.values() if isinstance(found, dict) else found)]


def train(name, kind, env, config):
    config = {"num_workers": 0, "framework": sys.argv[1], "rollout_fragment_length": 25, **config}
    trainer = kind(env=env, config=config)
    trainer.train()
    trained = arrays(trainer)
    path = trainer.save(name)
    again = kind(env=env, config=config)
    before = arrays(again)
    again.restore(path)
    policy, restored = again.get_policy(), arrays(again)
    moments, theirs = map(variables_of_optimizer, (policy, trainer.get_policy()))
    seen = gym.make(env).reset()
    state = policy.get_initial_state()
    acts = [t.compute_action(seen, state=state or None, explore=False) for t in (trainer, again)]
    acts = [a[0] if state else a for a in acts]
    again.train()
    found = {
        "policy": type(policy).__name__,
        "restored": all(map(np.array_equal, trained, restored)),
        "was other": not all(map(np.array_equal, before, restored)),
        "learned": not all(map(np.array_equal, restored, arrays(again))),
        "moments": sum(bool(np.any(v)) for v in moments if np.ndim(v)),
        "same moments": len(moments) == 0 or all(map(np.array_equal, moments, theirs)),
        "same action": bool(np.allclose(*acts)),
        "iteration": again.iteration,
    }
    print("FOUND " + json.dumps({name: found}))
    trainer.stop()
    again.stop()


ModelCatalog.register_custom_model("dense", Dense)
ModelCatalog.register_custom_model("memory", Memory)
ModelCatalog.register_custom_action_dist("own", Distribution)
ray.init(num_cpus=2)
ppo = {"train_batch_size": 50, "sgd_minibatch_size": 25, "num_sgd_iter": 2}
dense = {"custom_model": "dense", "custom_model_config": {"size": 6}}
train("PPO", PPOTrainer, "CartPole-v0", {"model": dense, **ppo})
train(
    "LSTM",
    PPOTrainer,
    "CartPole-v0",
    {"model": {"custom_model": "memory", "max_seq_len": 5}, **ppo},
)
train("distribution", PPOTrainer, "CartPole-v0", {"model": {"custom_action_dist": "own"}, **ppo})
replay = {
    "train_batch_size": 16,
    "learning_starts": 25,
    "timesteps_per_iteration": 50,
    "min_iter_time_s": 0,
}
train("DQN", DQNTrainer, "CartPole-v0", {"model": dense, **replay})
own = {"policy_model": {"custom_model": "dense"}}
train("SAC", SACTrainer, "Pendulum-v0", {**own, **replay})
