"""gym's own wrappers, with the arguments of their time, and what each gives."""

import gym
import numpy as np
from facts import record
from gym import error, logger
from gym.wrappers import (
    ClipAction,
    FilterObservation,
    FlattenObservation,
    FrameStack,
    RecordEpisodeStatistics,
    RescaleAction,
    TimeAwareObservation,
    TimeLimit,
    TransformObservation,
    TransformReward,
)
from gym.wrappers.time_limit import TimeLimit as SameLimit


class Ramp(gym.Env):
    def __init__(self, nested=False):
        box = gym.spaces.Box(np.float32(-5), np.float32(5), (2,), np.float32)
        self.observation_space = gym.spaces.Dict({"a": box, "b": box}) if nested else box
        self.action_space = gym.spaces.Box(np.float32(-2), np.float32(2), (1,), np.float32)
        self.nested, self.actions = nested, []

    def look(self):
        flat = np.full(2, self.n, np.float32)
        return {"a": flat, "b": flat * 10} if self.nested else flat

    def reset(self, **kwargs):
        self.n = 0
        return self.look()

    def step(self, action):
        self.actions.append(float(action[0]))
        self.n += 1
        return self.look(), 1.0, self.n == 4, {}


def played(env, action=3.0, steps=4):
    first, rows = env.reset(), []
    for _ in range(steps):
        obs, reward, done, info = env.step(np.array([action], np.float32))
        rows.append([np.asarray(obs) if not isinstance(obs, dict) else obs, reward, bool(done)])
    return {"first": first if isinstance(first, dict) else np.asarray(first), "rows": rows[-2:]}


logger.set_level(logger.ERROR)
inner = Ramp()
stats = RecordEpisodeStatistics(Ramp(), deque_size=5)
last = played(stats)
_, _, _, info = (stats.reset(), None, None, None)
rows = [stats.step(np.zeros(1, np.float32)) for _ in range(4)]
found = {
    "clip": played(ClipAction(inner)),
    "clipped": inner.actions[:4],
    "filter": played(FilterObservation(Ramp(nested=True), filter_keys=["b"])),
    "flatten": FlattenObservation(Ramp(nested=True)).observation_space.shape,
    "stack": played(FrameStack(Ramp(), num_stack=3)),
    "stacked": FrameStack(Ramp(), 3).observation_space.shape,
    "time": TimeAwareObservation(Ramp()).observation_space.shape,
    "times": played(TimeAwareObservation(Ramp())),
    "limit": played(TimeLimit(Ramp(), max_episode_steps=2), steps=2),
    "observation": played(TransformObservation(Ramp(), f=lambda obs: obs + 1)),
    "reward": played(TransformReward(Ramp(), lambda r: r - 3)),
    "rescaled": RescaleAction(Ramp(), -1, 1).action_space.high,
    "same": SameLimit is TimeLimit,
    "episode": [float(rows[-1][3]["episode"]["r"]), int(rows[-1][3]["episode"]["l"])],
    "errors": [
        issubclass(getattr(error, n), error.Error) for n in ("UnseedableEnv", "DeprecatedEnv")
    ],
}
record(**found)
