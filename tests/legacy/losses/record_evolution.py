"""Records what ES and ARS of an old Ray made of given returns, and how they shared filters.

Usage: `python record_evolution.py OUT`, with the Python of an environment that has Ray 1.13.0 and
TensorFlow (it runs on Python 3.8). It writes `OUT/<case>.npz`; `tests/unit/algorithms/
test_evolution.py` compares.

The trainers are real, and so are their updates; only the episodes are made up: where each
perturbation begins in the noise table, and the returns that it had. A case holds, by name:

    config.*                        the settings that matter, as the old Ray knew them
    weights                         before, as one vector; TensorFlow's policy has no critic
    step.<i>.places, .returns       the made-up episodes of an update: `[n]`, and `[n, 2]`
    step.<i>.weights                after the update
    step.<i>.weights_norm, .grad_norm, .update_ratio    what the result said

`filters.npz` holds what the filters of two workers were given before each of three
synchronisations, and count, mean and deviation of the trainer's filter after it.
"""

import gym
import numpy as np
import ray
from ray.rllib.agents.ars import ars
from ray.rllib.agents.ars.ars_tf_policy import ARSTFPolicy
from ray.rllib.agents.es import es, optimizers
from ray.rllib.agents.es.es_tf_policy import ESTFPolicy
from ray.rllib.utils.filter import MeanStdFilter
from ray.rllib.utils.filter_manager import FilterManager
from recording import record_all, save

OBSERVATIONS = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
DISCRETE = gym.spaces.Discrete(3)
BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
NOISE = 20000
ES = (es.ESTrainer, ESTFPolicy, es.DEFAULT_CONFIG, "stepsize l2_coeff")
ARS = (ars.ARSTrainer, ARSTFPolicy, ars.DEFAULT_CONFIG, "sgd_stepsize num_rollouts rollouts_used")

#: Case → algorithm, actions, settings, how many pairs of episodes an update has.
CASES = {
    "es-discrete": (ES, DISCRETE, {}, 40),
    "es-continuous": (ES, BOX, {"stepsize": 0.02, "l2_coeff": 0.1}, 700),
    "ars-discrete": (ARS, DISCRETE, {"num_rollouts": 50, "rollouts_used": 20}, 25),
    "ars-continuous": (ARS, BOX, {"sgd_stepsize": 0.05, "rollouts_used": 64}, 16),
}

UPDATES = 3


def record(case):
    """Records one case."""
    (trainer_class, policy_class, defaults, names), actions, settings, pairs = CASES[case]
    config = dict(defaults, framework="tf", num_workers=1, noise_size=NOISE, **settings)
    config["model"] = dict(config["model"], fcnet_hiddens=[8, 6])
    trainer = object.__new__(trainer_class)
    trainer.config, trainer.workers = config, []
    trainer.policy = policy_class(OBSERVATIONS, actions, config)
    trainer.noise = es.SharedNoiseTable(ray.get(es.create_shared_noise.remote(NOISE)))
    trainer.episodes_so_far, trainer.reward_list = 0, []
    trainer.report_length = config["report_length"]
    if trainer_class is es.ESTrainer:
        trainer.optimizer = optimizers.Adam(trainer.policy, config["stepsize"])
    else:
        trainer.optimizer = optimizers.SGD(trainer.policy, config["sgd_stepsize"])
        trainer.rollouts_used = config["rollouts_used"]
        trainer.num_rollouts = config["num_rollouts"]
    random = np.random.RandomState(7)
    size = trainer.policy.num_params
    trainer.policy.set_flat_weights(random.randn(size).astype(np.float32) * 0.4)
    found = {"config." + name: config[name] for name in names.split()}
    found["config.noise_size"] = NOISE
    found["weights"] = trainer.policy.get_flat_weights()
    for number in range(UPDATES):
        places = random.randint(0, NOISE - size + 1, pairs)
        even = np.linspace(8, 200, 2 * pairs)  # no two are equal: their order is not said
        returns = random.permutation(even).reshape(pairs, 2).astype(np.float32)
        lengths = [(int(a), int(b)) for a, b in returns]
        told = es.Result(list(places), list(returns), [], lengths, [1.0], [1])
        trainer._collect_results = lambda *_, told=told: ([told], 2 * pairs, 0)
        result = trainer.step_attempt()
        step = {"places": places, "returns": returns, "weights": trainer.policy.get_flat_weights()}
        for name in ("weights_norm", "grad_norm", "update_ratio"):
            step[name] = result["info"][name]
        found.update({f"step.{number}.{name}": v for name, v in step.items()})
    return found


class Worker:
    """A worker with a filter, as `FilterManager` calls it."""

    def __init__(self):
        self.filter = MeanStdFilter((3,))

    def see(self, observations):
        for observation in observations:
            self.filter(observation)

    def get_filters(self, flush_after=False):
        found = self.filter.as_serializable()
        if flush_after:
            self.filter.reset_buffer()
        return {"default_policy": found}

    def sync_filters(self, new_filters):
        self.filter.sync(new_filters["default_policy"])


def record_filters():
    """Records what synchronised filters hold."""
    random = np.random.RandomState(7)
    mine = MeanStdFilter((3,))
    workers = [ray.remote(Worker).remote() for _ in range(2)]
    found = {}
    for number in range(3):
        for index, worker in enumerate(workers):
            seen = random.normal(number, 1 + index, (5 + 4 * number + index, 3))
            found[f"seen.{number}.{index}"] = seen
            ray.get(worker.see.remote(seen))
        FilterManager.synchronize({"default_policy": mine}, workers)
        stat = mine.rs
        after = {"count": stat.n, "mean": stat.mean, "std": stat.std}
        found.update({f"after.{number}.{name}": value for name, value in after.items()})
    return found


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    record_all(record, CASES)
    save("filters", record_filters())
