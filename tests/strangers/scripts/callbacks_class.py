"""Every hook of a callbacks class, and what it is given."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer

calls = {}


class Line(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.speed = 1.5

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 2.0, self.n == 4, {"n": self.n}


class Watch(DefaultCallbacks):
    def note(self, name):
        calls[name] = calls.get(name, 0) + 1

    def on_episode_start(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        self.note("start")
        calls["index"] = env_index
        calls["worker"] = worker.worker_index
        calls["length at start"] = episode.length
        episode.hist_data["places"] = []
        episode.user_data["total"] = 0

    def on_episode_step(self, *, worker, base_env, episode, env_index, **kwargs):
        self.note("step")
        episode.hist_data["places"].append(float(episode.last_raw_obs_for()[0]))
        episode.user_data["total"] += episode.prev_reward_for()

    def on_episode_end(self, *, worker, base_env, policies, episode, env_index, **kwargs):
        self.note("end")
        env = base_env.get_unwrapped()[env_index]
        episode.custom_metrics["speed"] = env.speed
        episode.custom_metrics["total"] = episode.total_reward
        episode.custom_metrics["before"] = episode.user_data["total"]
        calls["rewards"] = {str(k): v for k, v in episode.agent_rewards.items()}
        calls["policies"] = sorted(policies)
        calls["action"] = int(episode.last_action_for()) in (0, 1)

    def on_sample_end(self, *, worker, samples, **kwargs):
        self.note("sample")
        calls["columns"] = "obs" in samples.keys() and "advantages" in samples.keys()

    def on_postprocess_trajectory(
        self,
        *,
        worker,
        episode,
        agent_id,
        policy_id,
        policies,
        postprocessed_batch,
        original_batches,
        **kwargs,
    ):
        self.note("postprocess")
        calls["original"] = sorted(map(str, original_batches))

    def on_train_result(self, *, trainer, result, **kwargs):
        self.note("result")
        result["callback_ok"] = True


ray.init()
config = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 20,
    "train_batch_size": 40,
    "sgd_minibatch_size": 20,
    "num_sgd_iter": 1,
    "callbacks": Watch,
}
trainer = PPOTrainer(env=Line, config=config)
result = trainer.train()
hist = result["hist_stats"]
record(
    calls=calls,
    metrics=result["custom_metrics"],
    ok=result["callback_ok"],
    places=[len(hist["places"]), max(hist["places"])],
    rewards=hist["episode_reward"],
)
trainer.stop()
