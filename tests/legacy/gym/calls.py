"""Calls of gym's API, answered by a real old gym and by ours: one a line, with its last value.

usage: python calls.py OUT.json, with the Python of an environment that has a gym; the test is
`tests/unit/legacy/test_old_gym.py`.
"""

import ast
import json
import sys
import warnings
from pathlib import Path

import numpy as np

#: What a call finds: an environment of each kind, and `play`, which takes its steps.
START = """
import gym
import numpy as np
from gym import spaces
class Countdown(gym.Env):
    observation_space = spaces.Box(0.0, 9.0, (2,), dtype=np.float32)
    action_space = spaces.Box(-2.0, 2.0, (1,), dtype=np.float32)
    reward_range = (0.0, 1.0)
    metadata = {"render.modes": ["rgb_array", "human"]}
    def reset(self):
        self.left = 4
        return np.array([self.left, 1], np.float32)
    def step(self, action):
        self.taken = action
        self.left -= 1
        return np.array([self.left, 1], np.float32), 1.0, self.left == 0, {"n": self.left}
    def render(self, mode="human", **kwargs):
        return np.full((4, 6, 3), self.left if hasattr(self, "left") else 0, np.uint8)
    def seed(self, seed=None):
        self.seeded = seed
        return [seed]
class Image(Countdown):
    observation_space = spaces.Box(0, 255, (8, 6, 3), dtype=np.uint8)
    def reset(self):
        super().reset()
        return np.arange(144).reshape(8, 6, 3).astype(np.uint8)
    def step(self, action):
        return (self.reset(),) + super().step(action)[1:]
class Parts(Countdown):
    observation_space = spaces.Dict({"b": spaces.Box(0.0, 1.0, (2,), dtype=np.float32), "a": spaces.Discrete(3)})
    def reset(self):
        super().reset()
        return {"b": np.array([0.5, 0.25], np.float32), "a": 2}
    def step(self, action):
        return ({"b": np.array([0.5, 0.25], np.float32), "a": 2},) + super().step(action)[1:]
def play(env, n=5, action=None):
    rows = [env.reset()]
    for _ in range(n):
        rows.append(env.step(env.action_space.low * 0 + 1.0 if action is None else action))
        if rows[-1][2]:
            break
    return rows
"""

#: Name → code.
CALLS = {
    "core.class_name": "gym.Wrapper(Countdown()).class_name()",
    "core.attributes": "e = gym.Wrapper(Countdown()); e.reset(); [e.left, e.reward_range, e.metadata, e.unwrapped is e.env, e.spec]",
    "core.private": "gym.Wrapper(Countdown())._nothing",
    "core.set_space": "e = gym.Wrapper(Countdown()); e.observation_space = spaces.Discrete(3); [e.observation_space, e.env.observation_space, e.action_space]",
    "core.set_reward_range": "e = gym.Wrapper(Countdown()); e.reward_range = (0, 5); e.metadata = {'x': 1}; [e.reward_range, e.metadata]",
    "core.context": "[e for e in [1] for x in [Countdown().__enter__()] if x]",
    "core.str": "[str(Countdown()), str(gym.Wrapper(Countdown()))]",
    "core.seed": "e = gym.Wrapper(gym.Wrapper(Countdown())); [e.seed(4), e.unwrapped.seeded]",
    "core.render_modes": "e = gym.Wrapper(Countdown()); e.reset(); e.render('rgb_array').shape",
    "core.action_wrapper": """
class Twice(gym.ActionWrapper):
    def action(self, action): return action * 2
    def reverse_action(self, action): return action / 2
e = Twice(Countdown()); e.reset(); e.step(np.array([1.0])); [e.left, e.env.taken, e.reverse_action(4.0)]""",
    "core.goal": """
class Goal(gym.GoalEnv):
    observation_space = spaces.Dict({k: spaces.Box(0.0, 1.0, (1,), dtype=np.float32) for k in ("observation", "achieved_goal", "desired_goal")})
    def reset(self):
        super().reset()
        return {k: np.zeros(1) for k in self.observation_space.spaces}
    def compute_reward(self, achieved_goal, desired_goal, info): return -1.0
e = Goal(); [sorted(e.reset()), gym.Wrapper(e).compute_reward(0, 1, {})]""",
    "core.goal_without_parts": "type('G', (gym.GoalEnv,), {'observation_space': spaces.Discrete(2)})().reset()",
    "core.reward_wrapper": """
class Half(gym.RewardWrapper):
    def reward(self, reward): return reward / 2
play(Half(Countdown()))""",
    "core.observation_wrapper": """
class Sum(gym.ObservationWrapper):
    def observation(self, observation): return observation.sum()
play(Sum(Countdown()))""",
    "core.isinstance": "[isinstance(gym.make('CartPole-v1'), gym.Env), isinstance(gym.make('CartPole-v1'), gym.Wrapper), isinstance(spaces.Discrete(2), gym.Space)]",
    "wrappers.ClipAction": "e = gym.wrappers.ClipAction(Countdown()); e.reset(); e.step(np.array([7.0])); [e.action_space, e.env.taken]",
    "wrappers.RescaleAction": "e = gym.wrappers.RescaleAction(Countdown(), 0.0, 1.0); e.reset(); e.step(np.array([1.0], np.float32)); [e.action_space, e.unwrapped.taken]",
    "wrappers.FlattenObservation": "e = gym.wrappers.FlattenObservation(Parts()); [e.observation_space, play(e)]",
    "wrappers.FilterObservation": "e = gym.wrappers.FilterObservation(Parts(), ['b']); [e.observation_space, play(e)]",
    "wrappers.FilterObservation.all": "gym.wrappers.FilterObservation(Parts()).observation_space",
    "wrappers.FrameStack": "e = gym.wrappers.FrameStack(Countdown(), 3); [e.observation_space, [np.asarray(r if i == 0 else r[0]) for i, r in enumerate(play(e))], len(e.frames), e.num_stack]",
    "wrappers.FrameStack.parts": "e = gym.wrappers.FrameStack(Countdown(), 3); o = e.reset(); [o.shape, str(o.dtype), len(o), o[0], o[1:]]",
    "wrappers.LazyFrames": "from gym.wrappers import LazyFrames; o = LazyFrames([np.zeros(2), np.ones(2)]); [o.shape, len(o), np.asarray(o), o[1]]",
    "wrappers.TransformObservation": "e = gym.wrappers.TransformObservation(Countdown(), lambda o: o * 2); [e.observation_space, play(e)]",
    "wrappers.TransformReward": "play(gym.wrappers.TransformReward(Countdown(), lambda r: r + 1))",
    "wrappers.TimeLimit": "play(gym.wrappers.TimeLimit(Countdown(), max_episode_steps=2))",
    "wrappers.TimeLimit.end": "play(gym.wrappers.TimeLimit(Countdown(), 4))",
    "wrappers.TimeLimit.attributes": "e = gym.wrappers.TimeLimit(Countdown(), 3); e.reset(); e.step(np.array([1.])); [e._max_episode_steps, e._elapsed_steps]",
    "wrappers.TimeLimit.none": "play(gym.wrappers.TimeLimit(Countdown(), 9))[-1]",
    "wrappers.RecordEpisodeStatistics": "e = gym.wrappers.RecordEpisodeStatistics(Countdown()); r = play(e)[-1]; [float(r[3]['episode']['r']), int(r[3]['episode']['l']), sorted(r[3]['episode']), list(map(float, e.return_queue)), list(map(int, e.length_queue)), r[3]['n']]",
    "wrappers.RecordEpisodeStatistics.size": "e = gym.wrappers.RecordEpisodeStatistics(Countdown(), deque_size=1); play(e); play(e); list(map(float, e.return_queue))",
    "wrappers.RecordEpisodeStatistics.vector": "e = gym.wrappers.RecordEpisodeStatistics(gym.vector.SyncVectorEnv([Countdown, Countdown])); e.reset(); r = [e.step(np.ones((2, 1), np.float32)) for _ in range(4)][-1]; [float(i['episode']['r']) for i in r[3]]",
    "wrappers.NormalizeObservation": "e = gym.wrappers.NormalizeObservation(Countdown()); rows = play(e); [[np.round(np.asarray(r if i == 0 else r[0], float), 4) for i, r in enumerate(rows)], np.round(e.obs_rms.mean, 4)]",
    "wrappers.NormalizeReward": "e = gym.wrappers.NormalizeReward(Countdown(), gamma=0.9); [round(float(r[1]), 4) for r in (play(e) + play(e)[1:])[1:4]]",
    "wrappers.NormalizeReward.second": "e = gym.wrappers.NormalizeReward(Countdown()); play(e); [round(float(r[1]), 4) for r in play(e)[1:]]",
    "wrappers.GrayScaleObservation": "e = gym.wrappers.GrayScaleObservation(Image()); o = e.reset(); [e.observation_space, o.shape, str(o.dtype)]",
    "wrappers.GrayScaleObservation.keep": "e = gym.wrappers.GrayScaleObservation(Image(), keep_dim=True); o = e.reset(); [e.observation_space, o.shape]",
    "wrappers.PixelObservationWrapper": "e = __import__('gym.wrappers.pixel_observation', fromlist=['x']).PixelObservationWrapper(Countdown()); [e.observation_space, {k: v.shape for k, v in e.reset().items()}]",
    "wrappers.PixelObservationWrapper.both": "e = __import__('gym.wrappers.pixel_observation', fromlist=['x']).PixelObservationWrapper(Countdown(), pixels_only=False, pixel_keys=('view',)); [e.observation_space, {k: v.shape for k, v in e.reset().items()}]",
    "wrappers.OrderEnforcing.plays": "play(__import__('gym.wrappers.order_enforcing', fromlist=['x']).OrderEnforcing(Countdown()))",
    "wrappers.TimeAwareObservation": "e = gym.wrappers.TimeAwareObservation(Countdown()); [e.observation_space, play(e)]",
    "wrappers.Monitor": "e = gym.wrappers.Monitor(Countdown(), '/tmp/nowhere36', video_callable=False, force=True); r = play(e); e.close(); [r, e.get_episode_rewards(), e.get_episode_lengths(), e.get_total_steps()]",
    "wrappers.Monitor.module": "from gym.wrappers.monitor import Monitor; Monitor is gym.wrappers.Monitor",
    "wrappers.chain": "e = gym.wrappers.FlattenObservation(gym.wrappers.FrameStack(gym.wrappers.TimeLimit(Countdown(), 2), 2)); [e.observation_space, play(e)]",
    "wrappers.around_made": "e = gym.wrappers.TransformReward(gym.make('CartPole-v1'), lambda r: r * 3); e.seed(3); e.reset(); r = e.step(0); [r[1], len(r), e.spec.id, e.unwrapped.__class__.__name__]",
    "wrappers.env_of": "e = gym.wrappers.ClipAction(gym.wrappers.TimeLimit(Countdown(), 2)); [type(e.env).__name__, type(e.env.env).__name__, type(e.unwrapped).__name__]",
    "wrappers.subclass": """
class Mine(gym.wrappers.TransformReward):
    def __init__(self, env):
        super().__init__(env, lambda r: r * 10)
        self.count = 0
    def step(self, action):
        self.count += 1
        return super().step(action)
e = Mine(Countdown()); [play(e), e.count]""",
    "wrappers.subclass_lambda": "e = gym.wrappers.TransformReward(Countdown(), lambda r: r * 10); [e.f(2), e.reward(3)]",
    "wrappers.subclass_observation": """
class Mine(gym.wrappers.FlattenObservation):
    def observation(self, observation):
        return super().observation(observation) * 2
play(Mine(Parts()), 1)""",
    "wrappers.subclass_clip": """
class Mine(gym.wrappers.ClipAction):
    def action(self, action):
        return super().action(action) + 1
e = Mine(Countdown()); e.reset(); e.step(np.array([9.0])); e.env.taken""",
    "wrappers.pickle_stats": "e = gym.wrappers.RecordEpisodeStatistics(Countdown()); [e.reset(), e.num_envs, e.episode_count] and e.episode_count",
    "vector.play": "v = gym.vector.SyncVectorEnv([Countdown, lambda: gym.wrappers.TimeLimit(Countdown(), 2)]); v.reset(); v.step(np.ones((2, 1), np.float32)); r = v.step(np.ones((2, 1), np.float32)); [r[0], r[1], r[2], [dict(i) for i in r[3]]]",
    "vector.spaces": "v = gym.vector.SyncVectorEnv([Countdown, Countdown]); [v.observation_space, v.single_observation_space, v.single_action_space, v.num_envs, len(v.envs), v.closed]",
    "vector.dict": "v = gym.vector.SyncVectorEnv([Parts, Parts]); o = v.reset(); [sorted(o), o['a'], o['b'].shape]",
    "vector.seed": "v = gym.vector.SyncVectorEnv([Countdown, Countdown]); v.seed(7); [e.seeded for e in v.envs]",
    "vector.seeds": "v = gym.vector.SyncVectorEnv([Countdown, Countdown]); v.seed([3, 9]); [e.seeded for e in v.envs]",
    "vector.make": "v = gym.vector.make('CartPole-v1', num_envs=2, asynchronous=False); o = v.reset(); r = v.step([0, 1]); v.close(); [o.shape, len(r), r[1], r[2], v.closed]",
    "vector.isinstance": "v = gym.vector.SyncVectorEnv([Countdown]); [isinstance(v, gym.vector.VectorEnv), isinstance(v, gym.Env), v.is_vector_env if hasattr(v, 'is_vector_env') else True]",
    "vector.wrapper": "v = gym.vector.VectorEnvWrapper(gym.vector.SyncVectorEnv([Countdown])); o = v.reset(); [o, v.num_envs, type(v.unwrapped).__name__]",
    "vector.async_names": "v = gym.vector.SyncVectorEnv([Countdown]); v.reset_async(); o = v.reset_wait(); v.step_async(np.ones((1, 1), np.float32)); [o, v.step_wait()[1]]",
    "vector.utils": "from gym.vector.utils import batch_space, create_empty_array; [batch_space(spaces.Box(0.0, 1.0, (2,), dtype=np.float32), 3), create_empty_array(spaces.Discrete(3), 2).shape]",
    "vector.copy": "v = gym.vector.SyncVectorEnv([Countdown], copy=False); a = v.reset(); v.step(np.ones((1, 1), np.float32)); float(a[0, 0])",
    "spaces.Box": "b = spaces.Box(-1, 1, (2,)); [b.low, b.high, b.shape, str(b.dtype), b.contains(np.zeros(2, np.float32)), b.contains(np.full(2, 3.0, np.float32))]",
    "spaces.Box.arrays": "b = spaces.Box(np.array([0, -1]), np.array([1, 2]), dtype=np.float32); [b, b.is_bounded()]",
    "spaces.Box.uint8": "b = spaces.Box(0, 255, (2, 2), np.uint8); [b, str(b.sample().dtype)]",
    "spaces.Box.float64": "spaces.Box(0.0, 1.0, (1,), np.float64).contains(np.array([0.5]))",
    "spaces.Box.float64_in_float32": "spaces.Box(0.0, 1.0, (1,)).contains(np.array([0.5]))",
    "spaces.Box.list": "spaces.Box(0.0, 1.0, (2,)).contains([0.5, 0.5])",
    "spaces.Box.eq": "[spaces.Box(0.0, 1.0, (2,)) == spaces.Box(0.0, 1.0, (2,)), spaces.Box(0.0, 1.0, (2,)) == spaces.Box(0.0, 2.0, (2,))]",
    "spaces.Box.bounds": "b = spaces.Box(np.array([0.0, -np.inf]), np.array([1.0, 1.0]), dtype=np.float32); [b.bounded_below, b.bounded_above, b.is_bounded('below')]",
    "spaces.Discrete": "d = spaces.Discrete(3); [d.n, d.shape, d.contains(2), d.contains(3), d.contains(np.int64(1)), 2 in d, d == spaces.Discrete(3)]",
    "spaces.Discrete.array": "[spaces.Discrete(3).contains(np.array(1)), spaces.Discrete(3).contains(1.0)]",
    "spaces.MultiDiscrete": "m = spaces.MultiDiscrete([2, 3]); [m.nvec, m.shape, m.contains(np.array([1, 2])), m.contains([1, 2]), str(m.dtype)]",
    "spaces.MultiBinary": "m = spaces.MultiBinary(3); [m.n, m.shape, m.contains(np.array([0, 1, 1], np.int8)), m.contains([0, 1, 1])]",
    "spaces.Dict": "d = spaces.Dict({'b': spaces.Discrete(2), 'a': spaces.Discrete(3)}); [list(d.spaces), d['a'].n, d.contains({'a': 1, 'b': 1}), d.contains({'a': 1})]",
    "spaces.Dict.kwargs": "d = spaces.Dict(b=spaces.Discrete(2), a=spaces.Discrete(3)); [list(d.spaces), sorted(d.sample())]",
    "spaces.Dict.pairs": "list(spaces.Dict([('b', spaces.Discrete(2)), ('a', spaces.Discrete(3))]).spaces)",
    "spaces.Tuple": "t = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]); [len(t.spaces), len(t), t[1].n, t.contains((1, 2)), t.contains([1, 2]), type(t.sample()).__name__]",
    "spaces.flatten": "d = spaces.Dict({'b': spaces.Box(0.0, 1.0, (2,), dtype=np.float32), 'a': spaces.Discrete(3)}); f = spaces.flatten(d, {'a': 1, 'b': np.array([0.5, 1.0], np.float32)}); [spaces.flatdim(d), f, spaces.flatten_space(d)]",
    "spaces.unflatten": "d = spaces.Tuple([spaces.Discrete(3), spaces.Box(0.0, 1.0, (1,), dtype=np.float32)]); u = spaces.unflatten(d, np.array([0, 0, 1, 0.5], np.float32)); [int(u[0]), u[1]]",
    "spaces.seed": "d = spaces.Discrete(1000); d.seed(3); a = [int(d.sample()) for _ in range(3)]; d.seed(3); a == [int(d.sample()) for _ in range(3)]",
    "spaces.own": """
class Even(gym.Space):
    def __init__(self):
        super().__init__((), np.int64)
    def sample(self): return 2 * self.np_random.randint(5)
    def contains(self, x): return x % 2 == 0
s = Even(); s.seed(1); [s.sample() % 2, 4 in s, 3 in s, s.shape, str(s.dtype), isinstance(s, gym.spaces.Space)]""",
    "spaces.own_bare": "type('S', (gym.Space,), {'contains': lambda self, x: x == 1})().contains(1)",
    "spaces.modules": "from gym.spaces.box import Box; from gym.spaces.space import Space; from gym.spaces.dict import Dict; from gym.spaces.tuple import Tuple; from gym.spaces.discrete import Discrete; from gym.spaces.multi_discrete import MultiDiscrete; from gym.spaces.multi_binary import MultiBinary; [Box is spaces.Box, Dict is spaces.Dict, issubclass(Tuple, Space)]",
    "error.bases": """
from gym import error
names = ["Unregistered", "UnregisteredEnv", "UnregisteredBenchmark", "DeprecatedEnv", "UnseedableEnv", "DependencyNotInstalled", "APIError", "APIConnectionError", "InvalidRequestError", "AuthenticationError", "RateLimitError", "VideoRecorderError", "InvalidFrame", "DoubleWrapperError", "WrapAfterConfigureError", "RetriesExceededError", "AlreadyPendingCallError", "NoAsyncCallError", "ClosedEnvironmentError"]
{n: [b for b in ["Exception"] + ["Error"] * 1 + names if b not in (n, "UnregisteredEnv") and issubclass(getattr(error, n), Exception if b == "Exception" else getattr(error, b))] for n in names}""",
    "error.unknown_env": """
from gym import error
try: gym.make("NothingHere-v0"); r = "made"
except error.UnregisteredEnv as e: r = "UnregisteredEnv"
except error.Error as e: r = "Error"
r""",
    "error.malformed": """
from gym import error
try: gym.make("nothing here"); r = "made"
except error.Error as e: r = "Error"
r""",
    "error.spec": """
from gym import error
try: gym.spec("NothingHere-v0"); r = "made"
except error.Error as e: r = "Error"
r""",
    "error.raised": "raise gym.error.InvalidAction('x')",
    "logger.levels": "from gym import logger; [logger.DEBUG, logger.INFO, logger.WARN, logger.ERROR, logger.DISABLED]",
    "logger.set": "from gym import logger; logger.set_level(logger.ERROR); logger.setLevel(30); logger.set_level(30)",
    "logger.MIN_LEVEL": "from gym import logger; logger.set_level(40); r = logger.MIN_LEVEL; logger.set_level(30); r",
    "logger.prints": """
import io, contextlib
from gym import logger
out = io.StringIO()
logger.set_level(10)
with contextlib.redirect_stdout(out):
    logger.debug("a %s", 1); logger.info("b %s", 2)
logger.set_level(30)
out.getvalue()""",
    "logger.error_disabled": "from gym import logger; logger.set_level(50); logger.error('bad %s', 1); logger.warn('x'); logger.set_level(30)",
    "registration.spec": "s = gym.spec('CartPole-v1'); [s.id, s.max_episode_steps, s.reward_threshold, s.nondeterministic]",
    "registration.register": "gym.register(id='Mine-v3', entry_point=Countdown, max_episode_steps=3, reward_threshold=2.5, kwargs={}); e = gym.make('Mine-v3'); s = gym.spec('Mine-v3'); [len(play(e)), s.reward_threshold, s.max_episode_steps, e.spec.id, e.spec.reward_threshold, type(e).__name__, type(e.unwrapped).__name__]",
    "registration.kwargs": """
class Sized(Countdown):
    def __init__(self, size=1, more=0): self.size, self.more = size, more
gym.register(id="Sized-v0", entry_point=Sized, kwargs={"size": 4})
e = gym.make("Sized-v0", more=2); [e.size, e.more, gym.spec("Sized-v0")._kwargs]""",
    "registration.again": "from gym.envs.registration import register; register(id='Twice-v0', entry_point=Countdown, nondeterministic=True); gym.spec('Twice-v0').nondeterministic",
    "registration.registry": "gym.register(id='Mine-v4', entry_point=Countdown); r = gym.envs.registry; [('Mine-v4' in r.env_specs), ('Mine-v4' in [s.id for s in r.all()]), r.spec('Mine-v4').id, type(r.make('Mine-v4').unwrapped).__name__]",
    "registration.registry_register": "gym.envs.registry.register(id='Mine-v5', entry_point=Countdown); type(gym.make('Mine-v5').unwrapped).__name__",
    "registration.delete": "gym.register(id='Mine-v6', entry_point=Countdown); del gym.envs.registry.env_specs['Mine-v6']; 'Mine-v6' in gym.envs.registration.registry.env_specs",
    "registration.spec_make": "gym.register(id='Mine-v7', entry_point=Countdown, max_episode_steps=2); e = gym.spec('Mine-v7').make(); [e.reset(), len(e.step(np.array([1.])))]",
    "registration.cartpole_spec_make": "e = gym.spec('CartPole-v1').make(); [np.shape(e.reset()), len(e.step(0))]",
    "registration.EnvSpec": "from gym.envs.registration import EnvSpec; s = EnvSpec('Own-v0', entry_point=Countdown, max_episode_steps=5); e = s.make(); [s.id, s.max_episode_steps, np.shape(e.reset()), len(e.step(np.array([1.])))]",
    "registration.load": "from gym.envs.registration import load; load('collections:OrderedDict').__name__",
    "registration.EnvRegistry": "from gym.envs.registration import EnvRegistry; r = EnvRegistry(); r.register('Own-v1', entry_point=Countdown); len(play(r.make('Own-v1')))",
    "registration.string": "gym.register(id='Text-v0', entry_point='gym.envs.classic_control:CartPoleEnv', max_episode_steps=7); e = gym.make('Text-v0'); [np.shape(e.reset()), len(e.step(0)), e._max_episode_steps]",
    "registration.string_long": "gym.register(id='Text-v1', entry_point='gym.envs.classic_control.cartpole:CartPoleEnv'); e = gym.make('Text-v1'); [np.shape(e.reset()), len(e.step(0))]",
    "registration.made_env": "e = gym.make('MountainCar-v0').env; e.seed(3); [np.round(e.reset(), 4), len(e.step(0)), type(e).__name__, isinstance(e, gym.Env)]",
    "registration.made_unwrapped": "e = gym.make('CartPole-v1').unwrapped; e.seed(3); e.reset(); [len(e.step(0)), type(e).__name__, e.theta_threshold_radians > 0, e.unwrapped is e]",
    "registration.made_unlimited": "e = gym.make('MountainCar-v0').env; e.reset(); any(e.step(1)[2] for _ in range(300))",
    "registration.made_layers": "e = gym.make('CartPole-v1'); [type(e).__name__, isinstance(e, gym.wrappers.TimeLimit), e.spec.id, e.env.spec.id]",
    "registration.made_copy": "import copy; e = gym.make('CartPole-v1'); e.seed(3); e.reset(); c = copy.deepcopy(e); [np.round(e.step(0)[0], 4), np.round(c.step(0)[0], 4)]",
    "registration.made_state": "e = gym.make('CartPole-v1').unwrapped; e.reset(); e.state = np.zeros(4); [np.round(e.step(1)[0], 4), np.round(e.state, 4).tolist()]",
    "registration.made_nA": "e = gym.make('Taxi-v3'); [e.nS, e.nA, len(e.P), e.env.nA, e.unwrapped.nS]",
    "registration.make_limit": "gym.make('CartPole-v1')._max_episode_steps",
    "registration.set_limit": "e = gym.make('CartPole-v1'); e._max_episode_steps = 3; e.reset(); [e.step(0)[2] for _ in range(3)]",
    "registration.set_spec_limit": "gym.register(id='Mine-v8', entry_point=Countdown); gym.spec('Mine-v8').max_episode_steps = 2; len(play(gym.make('Mine-v8')))",
    "envs.CartPole": "from gym.envs.classic_control import CartPoleEnv; e = CartPoleEnv(); e.seed(3); [np.round(e.reset(), 5), e.step(1)[1:], e.observation_space.shape, e.action_space.n, e.gravity]",
    "envs.made": """
out = []
for n in ['CartPole-v1', 'MountainCar-v0', 'Acrobot-v1', 'MountainCarContinuous-v0']:
    e = gym.make(n); e.seed(5); o = e.reset(); s = e.step(e.action_space.n - 1 if hasattr(e.action_space, 'n') else np.array([0.5], np.float32)); out.append([n, np.round(o, 4), np.round(s[0], 4), round(float(s[1]), 4), bool(s[2])])
out""",
    "envs.Pendulum": "from gym.envs.classic_control.pendulum import PendulumEnv, angle_normalize; e = PendulumEnv(); e.seed(5); [np.round(e.reset(), 4), round(float(e.step([0.5])[1]), 4), round(float(angle_normalize(5.0)), 4)]",
    "envs.FrozenLake": "from gym.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map, LEFT; e = FrozenLakeEnv(desc=['SF', 'FG'], is_slippery=False); [int(e.reset()), tuple(map(float, e.step(2)[:3])), e.nS, e.nA, [list(map(float, row)) for row in e.P[0][1]], LEFT, len(generate_random_map(5)), e.s]",
    "envs.FrozenLake.made": "e = gym.make('FrozenLake8x8-v0' if 'FrozenLake8x8-v0' in gym.envs.registry.env_specs else 'FrozenLake8x8-v1', is_slippery=False); int(e.reset()), e.observation_space.n",
    "envs.CliffWalking": "from gym.envs.toy_text.cliffwalking import CliffWalkingEnv; e = CliffWalkingEnv(); [int(e.reset()), float(e.step(0)[1]), e.nS]",
    "envs.Taxi": "from gym.envs.toy_text.taxi import TaxiEnv; e = TaxiEnv(); e.seed(1); e.reset(); [e.encode(1, 2, 3, 0), list(e.decode(134)), e.observation_space.n]",
    "envs.Blackjack": "from gym.envs.toy_text.blackjack import BlackjackEnv, sum_hand, is_bust; e = BlackjackEnv(); [len(e.reset()), sum_hand([1, 10]), bool(is_bust([10, 10, 5])), len(e.step(0))]",
    "envs.subclass": """
from gym.envs.classic_control.cartpole import CartPoleEnv
class Mine(CartPoleEnv):
    def __init__(self):
        super().__init__()
        self.length = 1.0
    def reset(self):
        self.state = self.np_random.uniform(low=-0.01, high=0.01, size=(4,))
        self.steps_beyond_done = None
        return np.array(self.state)
    def step(self, action):
        o, r, d, i = super().step(action)
        return o, r - 1, d, i
e = Mine(); e.seed(2); [np.round(e.reset(), 5), e.step(0)[1:]]""",
    "envs.subclass_randint": """
from gym.envs.classic_control.cartpole import CartPoleEnv
class Mine(CartPoleEnv):
    def reset(self):
        super().reset()
        return self.np_random.randint(5)
e = Mine(); e.seed(2); [0 <= int(e.reset()) < 5]""",
    "envs.cartpole_past_end": """
from gym.envs.classic_control import CartPoleEnv; e = CartPoleEnv(); e.seed(0); e.reset(); n = 0
while not e.step(0)[2]: n += 1
n""",
    "envs.discrete": "from gym.envs.toy_text.discrete import DiscreteEnv, categorical_sample; e = DiscreteEnv(2, 1, {0: {0: [(1.0, 1, 2.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, [1.0, 0.0]); e.seed(3); [int(e.reset()), e.step(0), e.lastaction]",
    "utils.seeding": "from gym.utils import seeding; r, s = seeding.np_random(5); [s, round(float(r.uniform()), 6), int(r.randint(1000)), [round(float(x), 6) for x in r.rand(2)], [round(float(x), 6) for x in r.normal(0, 1, 2)], r.choice([1, 2, 3]) in [1, 2, 3], r.permutation(4).tolist()]",
    "utils.seeding.state": "from gym.utils import seeding; r, _ = seeding.np_random(5); s = r.get_state(); a = r.uniform(); r.set_state(s); a == r.uniform()",
    "utils.seeding.seed": "from gym.utils import seeding; r, _ = seeding.np_random(5); r.seed(4); a = r.uniform(); r.seed(4); a == r.uniform()",
    "utils.seeding.integers": "from gym.utils import seeding; r, _ = seeding.np_random(5); [bool(1 <= r.random_integers(1, 2) <= 2), r.tomaxint() >= 0, r.random_sample((2,)).shape, r.randn(2, 3).shape, r.sample((2,)).shape if hasattr(r, 'sample') else (2,)]",
    "utils.seeding.negative": "from gym.utils import seeding; seeding.np_random(-1)",
    "utils.seeding.hash": "from gym.utils import seeding; [seeding.hash_seed(5), seeding.hash_seed(5, 4), seeding.create_seed(7), seeding.create_seed('abc')]",
    "utils.colorize": "from gym.utils import colorize; [colorize('a', 'red'), colorize('a', 'green', bold=True)]",
    "utils.colorize.module": "from gym.utils.colorize import colorize, color2num; sorted(color2num)",
    "utils.EzPickle": """
import pickle
from gym import utils
from gym.utils import EzPickle
class E(Countdown, EzPickle):
    def __init__(self, a, b=2):
        EzPickle.__init__(self, a, b)
        self.a = a
e = E(3); [e._ezpickle_args, e._ezpickle_kwargs, utils.EzPickle is EzPickle]""",
    "utils.check_env": "from gym.utils.env_checker import check_env; check_env(type('C', (Countdown,), {'step': lambda self, a: (np.zeros(2, np.float32), 1.0, False, {}), 'reset': lambda self: np.zeros(2, np.float32)})())",
    "gym.names": "[gym.logger.INFO, gym.error.Error.__name__, gym.spaces.Box.__name__, gym.wrappers.TimeLimit.__name__, gym.utils.EzPickle.__name__, gym.envs.registration.register.__name__, gym.core.Env is gym.Env, gym.vector.SyncVectorEnv.__name__]",
}


def plain(value):
    """A value as JSON, the same of any gym."""
    kind = type(value).__name__
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return round(value, 5) if np.isfinite(value) else str(value)
    if hasattr(value, "sample") and hasattr(value, "contains"):
        parts = {"Box": "low high", "Dict": "spaces", "Discrete": "n", "Tuple": "spaces"}
        return [kind, *(plain(getattr(value, name)) for name in parts.get(kind, "").split())]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "__array__"):
        found = np.asarray(value)
        return ["array", str(found.dtype), *map(plain, found.tolist())]
    return "a " + kind


def answer(code):
    """What a call gives, or the class of its error."""
    namespace = {"__name__": "calls", "__file__": "/home/me/calls.py"}
    try:
        exec(START, namespace)
        tree = ast.parse(code.strip())
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body.pop()
            exec(compile(tree, "calls", "exec"), namespace)
            return plain(eval(compile(ast.Expression(last.value), "calls", "eval"), namespace))
        exec(compile(tree, "calls", "exec"), namespace)
    except Exception as error:
        return "raises " + type(error).__name__
    return None


def answers():
    """All calls and what they give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: answer(code) for name, code in CALLS.items()}


if __name__ == "__main__":
    lines = ["%s: %s" % (json.dumps(name), json.dumps(found)) for name, found in answers().items()]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
