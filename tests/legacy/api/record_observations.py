"""Records which observations an old Ray refused: `record_observations.py OUT.json`. No Ray runs."""

import json
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gym
import observing
import ray
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

RAY = tuple(int(part) for part in ray.__version__.split("."))
CONFIG = {
    "env": "shown",
    "num_workers": 0,
    "rollout_fragment_length": observing.LENGTH - 1,
    "train_batch_size": observing.LENGTH - 1,
    "model": {"fcnet_hiddens": [4]},
    **({"use_pytorch": True} if RAY < (1,) else {"framework": "torch"}),
}


def refused(made, **more):
    """At which observation sampling ends, whether a check ended it, and the error."""
    register_env("shown", lambda context: made(context))
    try:
        trainer = PPOTrainer(config={**CONFIG, **more})
        trainer.workers.local_worker().sample()
    except Exception as error:
        functions = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
        checked = bool(functions & {"check_shape", "check_env"})
        at = observing.Showing.newest.given - 1
        said = str(error).partition("\n")[0].partition(" at /")[0]  # torch adds a path of its own
        return [at, checked, type(error).__name__, said[:80]]
    return None


def shared(agent, *_, **__):
    return "shared"


def main(out):
    ray.put, ray.get = (lambda value: value), (lambda value, **_: value)
    switches = observing.SWITCHES if RAY >= (1, 12) else {"default": {}}
    found = {}
    for agents in (1, 2):
        for switch, config in switches.items():
            told = found[f"{switch}, {agents}"] = {}
            for name, place, space, shown in observing.cases(gym, agents):
                if agents == 1:
                    made, more = observing.make_env(gym, space, *shown), {}
                else:
                    made = observing.make_pair(MultiAgentEnv, gym, space, *shown)
                    policies = {"shared": (None, space, gym.spaces.Discrete(2), {})}
                    more = {"multiagent": {"policies": policies, "policy_mapping_fn": shared}}
                told[f"{name} at {place}"] = refused(made, **config, **more)
    parts = []
    for part, told in found.items():
        lines = ",\n ".join(f"{json.dumps(at)}: {json.dumps(told[at])}" for at in told)
        parts.append(f"{json.dumps(part)}: {{\n {lines}\n}}")
    Path(out).write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
