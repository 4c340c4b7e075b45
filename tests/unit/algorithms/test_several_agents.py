"""Value targets of several agents are those of Ray 1.13.0, also where an episode is cut.

`tests/legacy/losses/record_agents.py` made the numbers, with Ray 1.13.0 and torch.
"""

import json

import pytest

pytest.importorskip("ray")

import gymnasium
import numpy as np

from rllib_compat import translate
from rllib_compat.adapters import adapt_callbacks
from rllib_compat.algorithms import use_legacy_learners
from rllib_compat.ray_versions import algorithms, episodes, startup
from rllib_compat.runtime import use_compat_env_runners, with_trainer
from tests.legacy.losses import agents
from tests.marks import OTHERS_WARNINGS, marked
from tests.unit.algorithms.recordings import close
from tests.unit.algorithms.test_losses import HEADS, RECORDS, SEPARATE

pytestmark = OTHERS_WARNINGS

RECORDED = json.loads((RECORDS / "several_agents.json").read_text())
LAYERS = HEADS | SEPARATE
SPACES = (gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32), gymnasium.spaces.Discrete(2))


def algorithm_of(case):
    """What a trainer builds of the case's config, while no Ray is running."""
    env, told, more = agents.CASES[case]
    policy = (None, *SPACES, {})
    several = {"policies": {"first": policy, "others": policy}}
    several["policy_mapping_fn"] = lambda agent, *_, **__: agents.policy_of(agent)
    old = {**agents.CONFIG, "env": getattr(agents, env), "env_config": told, **more}
    translation = translate({**old, "multiagent": several}, algorithm="PPO", legacy_ray="1.13.0")
    config, ends = translation.algorithm_config, translation.truncation_terminates
    config.callbacks(with_trainer(adapt_callbacks(None), truncation_terminates=ends))
    use_legacy_learners(config, translation.legacy_training)
    use_compat_env_runners(config)
    return algorithms.build_algorithm(config)


def sampled(env_runner, *, whole):
    """At least 25 steps of the environment."""
    if not whole:
        return env_runner.sample(num_timesteps=25)
    found = []
    while sum(episode.env_steps() for episode in found) < 25:
        found += env_runner.sample(num_episodes=1)
    return found


@pytest.mark.parametrize("case", marked(agents.CASES, ["together-soft-horizon", "turns-horizon"]))
def test_value_targets_are_those_of_ray_1_13(case):
    with startup.without_cluster():
        algorithm = algorithm_of(case)
        learner, env_runner = algorithm.learner_group._learner, algorithm.env_runner
        for name, weights in RECORDED["weights"].items():
            split = ((key.rpartition("."), np.float32(array)) for key, array in weights.items())
            moved = {f"{LAYERS[layer]}.{part}": array for (layer, _, part), array in split}
            module = learner.module[name]
            module.set_state({**module.get_state(), **moved})
        env_runner.set_state(learner.get_state(components="rl_module"))
        chunks = [episodes.to_numpy(e) for e in sampled(env_runner, whole="complete" in case)]
        batch = learner._learner_connector(
            rl_module=learner.module,
            batch={},
            episodes=chunks,
            shared_data={},
            metrics=learner.metrics,
        )
    for name, theirs in RECORDED[case].items():
        valid = batch[name]["loss_mask"]
        close(np.sort(batch[name]["rewards"][valid]), theirs["rewards"], 1e-5)
        close(np.sort(batch[name]["value_targets"][valid]), theirs["targets"], 1e-4)
