"""Records what policies of an old Ray see; runs inside an environment that has one.

    python -m tests.legacy.atari.record OUT.json

A worker of that Ray plays the made environments with a policy that takes the same actions always.
What it is given (after wrappers, preprocessors and filter), and rewards and ends as they go to the
learner, are written down: arrays of few numbers as they are, others as hashes.
"""

import json
import sys
import warnings

import numpy as np
import ray
from ray.rllib.evaluation.rollout_worker import RolloutWorker
from ray.rllib.policy import Policy

from tests.legacy.atari.cases import FEWER, GAMES, PLAYED, STEPS, name_of
from tests.legacy.atari.worlds import TODAYS, Game, Given, digest, spaces_and_values

RELEASE = tuple(int(part) for part in ray.__version__.split(".")[:2])

#: An array of so many numbers is written down as it is.
FEW = 40


class Seen(Policy):
    """Takes the actions in turn, and keeps what it was given."""

    given = []

    def __init__(self, observation_space, action_space, config):
        super().__init__(observation_space, action_space, config)
        self._taken = 0

    def compute_actions(self, obs_batch, *_, **__):
        Seen.given.extend(np.asarray(obs_batch))
        self._taken += len(obs_batch)
        action = self._taken * 7 % self.action_space.n
        return np.array([action] * len(obs_batch)), [], {}

    def compute_actions_from_input_dict(self, input_dict, *_, **__):
        return self.compute_actions(input_dict["obs"])

    def learn_on_batch(self, _):
        return {}

    def get_weights(self):
        return {}

    def set_weights(self, _):
        """Has none."""


def worker(creator, config, model):
    config = dict(config)
    if RELEASE >= (2, 3):
        return _todays_worker(creator, config, model)
    from ray.rllib.agents.trainer import COMMON_CONFIG

    whole = dict(COMMON_CONFIG, **config)
    whole["model"] = dict(COMMON_CONFIG["model"], **model)
    first = {"policy_spec" if RELEASE >= (1, 0) else "policy": Seen}
    if RELEASE >= (1, 13):
        first["disable_env_checking"] = True  # it would play an episode
    return RolloutWorker(
        env_creator=creator,
        rollout_fragment_length=STEPS,
        batch_mode="truncate_episodes",
        preprocessor_pref=whole["preprocessor_pref"],
        observation_filter=whole["observation_filter"],
        clip_rewards=whole["clip_rewards"],
        model_config=whole["model"],
        policy_config=whole,
        **first
    )


def _todays_worker(creator, config, model):
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    whole = AlgorithmConfig().framework(None).environment(env="made", disable_env_checking=True)
    of_rollouts = ("preprocessor_pref", "observation_filter")
    told = {True: {}, False: {}}
    for key, value in config.items():
        told[key in of_rollouts][key] = value
    whole.rollouts(rollout_fragment_length=STEPS, num_rollout_workers=0, **told[True])
    whole.environment(**told[False])
    whole.training(model=model)
    whole.validate()
    return RolloutWorker(env_creator=creator, default_policy_class=Seen, config=whole)


def played(creator, config, model, steps=STEPS):
    """What a policy saw, and what a learner gets; or what the old Ray said."""
    Seen.given = []
    try:
        batch = worker(creator, config, model).sample()
    except Exception as error:  # what the old Ray could not do is a fact, too
        return {"error": "%s: %s" % (type(error).__name__, str(error)[:200])}
    batch = getattr(batch, "policy_batches", {}).get("default_policy", batch)
    found = {"seen": [shown(one) for one in Seen.given[:steps]]}
    found["rewards"] = np.asarray(batch["rewards"], float)[:steps].tolist()
    for name in ("dones", "terminateds", "truncateds"):
        if name in batch:
            found[name] = [int(over) for over in batch[name]][:steps]
    return found


def shown(array):
    array = np.asarray(array)
    if array.size > FEW:
        return digest(array)
    return [str(array.dtype), list(array.shape), array.astype(float).ravel().tolist()]


def _in_lines(found):
    """JSON with a line for each case."""
    cases = [json.dumps(name) + ": " + json.dumps(case) for name, case in found["cases"].items()]
    rest = {key: value for key, value in found.items() if key != "cases"}
    return json.dumps(rest)[:-1] + ', "cases": {\n' + ",\n".join(cases) + "\n}}\n"


def main(out):
    found = {"ray": ray.__version__, "numpy": np.__version__, "gymnasium": TODAYS, "cases": {}}
    for game, config, model in PLAYED:
        told = config
        if RELEASE >= (2, 3) and "NoFrameskip" in GAMES[game].get("name", "NoFrameskip"):
            told = dict(config, env_config={"frameskip": 1})  # where Ray 2.3 asks

        def create(_, game=game):
            return Game(**GAMES[game])

        found["cases"][name_of(game, config, model)] = played(create, told, model)
    for space, (kind, values) in spaces_and_values().items():
        for filtered in ("NoFilter", "MeanStdFilter"):

            def create(_, kind=kind, values=values):
                return Given(kind, values)

            case = {"observation_filter": filtered}
            found["cases"][name_of(space, case, {})] = played(create, case, {}, FEWER)
    with open(out, "w") as file:
        file.write(_in_lines(found))
    for name, case in found["cases"].items():
        first = case.get("error") or case["seen"][0]
        print(name, "|", first if len(str(first)) < 200 else str(first)[:200])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
