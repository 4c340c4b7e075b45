"""A Keras model of one's own, where TensorFlow is not installed."""

import ray
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.tf.tf_modelv2 import TFModelV2
from ray.rllib.utils.framework import try_import_tf

tf1, tf, tfv = try_import_tf()


class Dense(TFModelV2):
    def __init__(self, obs_space, action_space, num_outputs, *others):
        TFModelV2.__init__(self, obs_space, action_space, num_outputs, *others)
        layers = tf.keras.layers
        seen = layers.Input(obs_space.shape)
        hidden = layers.Dense(16, activation=tf.nn.relu)(seen)
        heads = [layers.Dense(size)(hidden) for size in (num_outputs, 1)]
        self.base_model = tf.keras.Model(seen, heads)

    def forward(self, input_dict, state, seq_lens):
        out, self._value = self.base_model(input_dict["obs"])
        return out, state

    def value_function(self):
        return tf.reshape(self._value, [-1])


ModelCatalog.register_custom_model("dense", Dense)
ray.init()
trainer = PPOTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "tf",
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 10,
        "num_sgd_iter": 1,
        "model": {"custom_model": "dense"},
    },
)
trainer.train()
