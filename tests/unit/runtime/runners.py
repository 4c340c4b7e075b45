"""Env runners without Ray's machinery, for callbacks that are called by hand."""

from types import SimpleNamespace

import gymnasium
import numpy as np
from gymnasium import spaces
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

OBS, ACT = spaces.Box(-100, 100, (1,)), spaces.Discrete(5)


class Logged(list):
    """A metrics logger that keeps what it is given."""

    def log_value(self, key, value, **how):
        self.append((key, value))

    def peek(self, key, default=None):
        return default


def module():
    return SimpleNamespace(
        observation_space=OBS, action_space=ACT, get_state=lambda: {"w": np.ones(1)}
    )


def runner(**modules):
    """A runner of one agent, or of many where modules are given by name."""
    return SimpleNamespace(
        env=SimpleNamespace(envs=[gymnasium.make("CartPole-v1")]),
        module=modules or module(),
        config=SimpleNamespace(policies_to_train=["p0"], to_dict=lambda: {"gamma": 0.5}),
        worker_index=2,
        metrics=Logged(),
        _env_to_module=SimpleNamespace(connectors=[]),
        _ongoing_episodes_for_metrics={},
    )


def play(adapter, env_runner, steps=4, cut_after=None, agents=None):
    """Calls the adapter as an env runner does through one episode; returns the chunks."""
    episode = (
        SingleAgentEpisode(observation_space=OBS, action_space=ACT)
        if agents is None
        else MultiAgentEpisode(
            observation_space=dict.fromkeys(agents, OBS),
            action_space=dict.fromkeys(agents, ACT),
            agent_to_module_mapping_fn=lambda agent, *_, **__: f"p{agent}",
        )
    )
    chunks = []

    def fire(event):
        handler = getattr(adapter, event)
        handler(
            episode=episode,
            env_runner=env_runner,
            metrics_logger=env_runner.metrics,
            env=env_runner.env,
            rl_module=env_runner.module,
            env_index=0,
        )

    def by_agent(value):
        return value if agents is None else dict.fromkeys(agents, value)

    name = "observation" if agents is None else "observations"
    episode.add_env_reset(**{name: by_agent(np.zeros(1, np.float32))}, infos=by_agent({"t": 0}))
    fire("on_episode_start")
    for t in range(1, steps + 1):
        done = t == steps
        words = {} if agents is None else {"__all__": done}
        step = {
            name: by_agent(np.full(1, t, np.float32)),
            "action" if agents is None else "actions": by_agent(t % 5),
            "reward" if agents is None else "rewards": by_agent(2.0),
            "infos": by_agent({"t": t}),
            "terminated" if agents is None else "terminateds": {**by_agent(done), **words}
            if agents
            else done,
        }
        episode.add_env_step(**step)
        fire("on_episode_step")
        if done:
            fire("on_episode_end")
        elif t == cut_after:
            chunk, episode = episode, episode.cut(len_lookback_buffer=1)
            env_runner._ongoing_episodes_for_metrics[chunk.id_] = [chunk]
            chunks.append(chunk)
            # The method was called `finalize` until Ray 2.43.
            as_arrays = getattr(chunk, "to_numpy", None) or chunk.finalize
            adapter.on_sample_end(
                env_runner=env_runner, metrics_logger=env_runner.metrics, samples=[as_arrays()]
            )
    return [*chunks, episode]
