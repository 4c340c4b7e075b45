"""Loops around what a trainer holds, execution plans and Tune functions: they need a running Ray.

`play` runs each of them and tells what came of it: numbers of steps, and which keys results have.
It runs on Python 3.7 with an old Ray, and on ours.
"""

import json
from pathlib import Path

import numpy as np

#: The steps of an episode, of a fragment and of a train batch.
EPISODE, FRAGMENT, BATCH = 10, 20, 40
#: What of a result is the same each time.
NUMBERS = (
    "timesteps_total",
    "timesteps_this_iter",
    "episodes_this_iter",
    "episodes_total",
    "training_iteration",
    "episode_reward_mean",
    "episode_len_mean",
)


def make_env(gym):
    """An environment whose episodes have all the same length, with a reward of 1 a step."""

    class Line(gym.Env):
        def __init__(self, context=None):
            self.observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
            self.action_space = gym.spaces.Discrete(2)
            self.at = 0

        def reset(self):
            self.at = 0
            return np.zeros(3, np.float32)

        def step(self, action):
            self.at += 1
            observation = np.full(3, self.at / EPISODE, np.float32)
            return observation, 1.0, self.at == EPISODE, {}

    return Line


def make_pair(base, line):
    """Agents who have such an environment each, and end together."""

    class Pair(base):
        def __init__(self, context):
            base.__init__(self)
            self.lines = [line() for _ in range(context["num_agents"])]
            self._agent_ids = set(range(context["num_agents"]))  # Ray 1.13 asks for them

        def reset(self):
            return {agent: one.reset() for agent, one in enumerate(self.lines)}

        def step(self, actions):
            steps = {agent: self.lines[agent].step(action) for agent, action in actions.items()}
            obs, rewards, dones, infos = (
                {agent: step[part] for agent, step in steps.items()} for part in range(4)
            )
            return obs, rewards, dict(dones, __all__=all(dones.values())), infos

    return Pair


def make_updating(base):
    """A policy of a class that counts how often its targets were updated."""

    class Updating(base):
        updates = 0

        def update_target(self):
            self.updates += 1

    return Updating


def config_of(ray, **more):
    """A config of no algorithm."""
    config = {"env": "line", "num_workers": 0, "rollout_fragment_length": FRAGMENT}
    config.update(train_batch_size=BATCH, timesteps_per_iteration=BATCH)
    config.update(ray.settings)
    config.update(more)
    return config


def told(trainer, learned=None):
    """What some iterations of a trainer tell."""
    results = [trainer.train() for _ in range(3)]
    last = results[-1]
    counters = {n: v for n, v in last["info"].items() if isinstance(v, int)}
    found = {
        "numbers": [
            {name: float(result[name]) for name in NUMBERS if name in result} for result in results
        ],
        "counters": counters,
        "keys": sorted(last),
        "info": sorted(last["info"]),
    }
    if learned:
        found["learned"] = learned(trainer)
    trainer.stop()
    return found


def sides(trainer, policy="default_policy"):
    """What a policy has learned."""
    return float(trainer.get_policy(policy).sides.sum())


def plan_trainer(ray, plan, **more):
    """A trainer of a plan, with policies without any model."""
    made = ray.build_trainer("Planned", make_updating(ray.Pushing), plan)
    return made(config=config_of(ray, **more))


def a_plan(ray):
    """Samples until there is a batch, and learns from it."""

    def plan(workers, config, **_):
        of = ray.execution
        batches = of("ParallelRollouts")(workers, mode="bulk_sync").combine(
            of("ConcatBatches")(min_batch_size=config["train_batch_size"])
        )
        learned = batches.for_each(of("TrainOneStep")(workers))
        return of("StandardMetricsReporting")(learned, workers, config)

    return told(plan_trainer(ray, plan), sides)


def a_plan_that_replays(ray):
    """Stores what it samples, and learns from what it replays; targets follow."""

    def plan(workers, config, **_):
        of = ray.execution
        size = {ray.capacity: 60, "replay_batch_size": 10, "learning_starts": 30, "num_shards": 1}
        priorities = {"alpha": 0.6, "beta": 0.4, "eps": 1e-6}
        size.update({f"prioritized_replay_{name}": told for name, told in priorities.items()})
        buffer = of("LocalReplayBuffer")(**size)
        rollouts = of("ParallelRollouts")(workers, mode="bulk_sync")
        stored = rollouts.for_each(of("StoreToReplayBuffer")(local_buffer=buffer))
        replayed = of("Replay")(local_buffer=buffer).for_each(of("TrainOneStep")(workers))
        replayed = replayed.for_each(of("UpdateTargetNetwork")(workers, 50))
        both = of("Concurrently")([stored, replayed], mode="round_robin", output_indexes=[1])
        return of("StandardMetricsReporting")(both, workers, config)

    return told(plan_trainer(ray, plan), lambda t: [sides(t), t.get_policy().updates])


def a_plan_that_mixes(ray):
    """Learns from each batch and one of those before."""

    def plan(workers, config, **_):
        of = ray.execution
        rollouts = of("ParallelRollouts")(workers, mode="bulk_sync")
        mixed = rollouts.combine(of("MixInReplay")(num_slots=3, replay_proportion=1))
        learned = mixed.for_each(of("TrainOneStep")(workers))
        return of("StandardMetricsReporting")(learned, workers, config)

    return told(plan_trainer(ray, plan), sides)


def a_plan_of_gradients(ray):
    """A worker computes gradients, which are applied as they come."""

    def plan(workers, config, **_):
        of = ray.execution
        gradients = of("AsyncGradients")(workers)
        applied = gradients.for_each(of("ApplyGradients")(workers, update_all=False))
        return of("StandardMetricsReporting")(applied, workers, config)

    found = told(plan_trainer(ray, plan, num_workers=1), sides)
    del found["numbers"]  # whose episodes are told when is a matter of luck
    return found


def a_plan_of_workers(ray):
    """Two workers sample as fast as they can; one step of learning for each of their batches."""

    def plan(workers, config, **_):
        of = ray.execution
        rollouts = of("ParallelRollouts")(workers, mode="async")
        learned = rollouts.for_each(of("TrainOneStep")(workers))
        return of("StandardMetricsReporting")(learned, workers, config)

    found = told(plan_trainer(ray, plan, num_workers=2), sides)
    del found["numbers"]
    return found


def a_plan_of_two(ray):
    """Two flows of the same samples, a policy's each."""

    def plan(workers, config, **_):
        of = ray.execution
        one, two = of("ParallelRollouts")(workers, mode="bulk_sync").duplicate(2)
        one = one.for_each(of("SelectExperiences")(["a"])).for_each(
            of("TrainOneStep")(workers, policies=["a"])
        )
        two = two.for_each(of("SelectExperiences")(["b"])).combine(of("ConcatBatches")(BATCH))
        two = two.for_each(of("TrainOneStep")(workers, policies=["b"]))
        both = of("Concurrently")([one, two], mode="round_robin", output_indexes=[0, 1])
        return of("StandardMetricsReporting")(both, workers, config)

    space = ray.make_env()
    policy = make_updating(ray.Pushing)
    spec = (policy, space.observation_space, space.action_space, {})
    agents = {
        "policies": {"a": spec, "b": spec},
        "policy_mapping_fn": lambda agent, *_, **__: "ab"[int(agent)],
    }
    trainer = plan_trainer(ray, plan, env="pair", env_config={"num_agents": 2}, multiagent=agents)
    return told(trainer, lambda t: [sides(t, "a"), sides(t, "b")])


def own_and_random(ray):
    """PPO's policy trains beside one without a model, a random one and one of rules."""
    space = ray.make_env()
    rules = make_rules(ray.Policy)
    pairs = space.observation_space, space.action_space
    agents = {
        "policies": {
            "trained": (None, *pairs, {"gamma": 0.9}),
            "rules": (rules, *pairs, {"side": 1}),
            "random": (ray.RandomPolicy, *pairs, {}),
        },
        "policy_mapping_fn": lambda agent, *_, **__: ["trained", "rules", "random"][int(agent)],
        "policies_to_train": ["trained"],
    }
    config = config_of(ray, env="pair", env_config={"num_agents": 3}, multiagent=agents)
    config.update(sgd_minibatch_size=BATCH, num_sgd_iter=1, model={"fcnet_hiddens": [4]})
    trainer = ray.trainer("PPO", config)
    before = _copied(trainer.get_policy("trained").get_weights())
    actions = trainer.get_policy("rules").compute_actions(np.zeros((4, 3), np.float32))[0]
    learners = trainer.train()["info"]["learner"]
    found = {
        "learners": sorted(learners),
        "side": trainer.get_policy("rules").config["side"],
        "actions": [int(action) for action in actions],
        "changed": _changed(before, trainer.get_policy("trained").get_weights()),
        "rules": trainer.get_policy("rules").get_weights(),
    }
    batch = trainer.workers.local_worker().sample()
    found["batch"] = sorted(batch.policy_batches)
    found["acted"] = sorted(set(batch.policy_batches["rules"]["actions"].tolist()))
    trainer.stop()
    return found


def make_rules(base):
    """A policy of a rule: to the side that its config names."""

    class Rules(base):
        def compute_actions(self, obs_batch, state_batches=None, *args, **kwargs):
            return [self.config["side"] for _ in obs_batch], [], {}

        def learn_on_batch(self, samples):
            return {}

        def get_weights(self):
            return {}

        def set_weights(self, weights):
            pass

    return Rules


def _copied(weights):
    return {name: np.array(array) for name, array in weights.items()}


def _changed(before, after):
    return any(not np.array_equal(before[name], after[name]) for name in before)


def _weights(worker):
    return worker.get_weights()["default_policy"]


def _count(worker):
    return worker.sample().count if worker.worker_index else 0  # the local one has no environment


def _number(worker, number):
    return [number, worker.worker_index]


def workers_of_a_trainer(ray):
    """Samples in the workers of a trainer, learns here, and sends the weights."""
    config = config_of(ray, num_workers=2, model={"fcnet_hiddens": [4]})
    config.update(sgd_minibatch_size=BATCH, num_sgd_iter=1)
    trainer = ray.trainer("PPO", config)
    local, remote = trainer.workers.local_worker(), trainer.workers.remote_workers()
    found = {
        "counts": trainer.workers.foreach_worker(_count),
        "numbers": trainer.workers.foreach_worker_with_index(_number),
        "names": trainer.workers.foreach_policy(lambda policy, name: name),
    }
    before = _copied(_weights(local))
    asked = [worker.sample.remote() for worker in remote]
    batches = ray.get(asked)
    batch = ray.SampleBatch.concat_samples(batches)
    told = local.learn_on_batch(batch)
    found["stats"] = sorted(told.get("default_policy", told)["learner_stats"])
    found["changed"] = _changed(before, _weights(local))
    weights = ray.put(local.get_weights())
    ray.get([worker.set_weights.remote(weights) for worker in remote])
    theirs = ray.get([worker.apply.remote(_weights) for worker in remote])
    found["sent"] = [not _changed(_weights(local), there) for there in theirs]
    # Ray 1.13 took the set of workers, and the others two arguments.
    metrics = ray.collect_metrics(local, remote)
    found["steps"] = [batch.count, sorted(one.count for one in batches)]
    found["columns"] = sorted(batch.keys())
    found["episodes"] = [metrics["episode_reward_mean"], metrics["episode_len_mean"]]
    found["keys"] = sorted(metrics)
    trainer.stop()
    return found


def sampled_before_training(ray):
    """What was sampled by hand before `train()` is no part of its first batch."""
    trainer = ray.trainer("PG", config_of(ray, model={"fcnet_hiddens": [4]}))
    sampled = trainer.workers.local_worker().sample().count
    results = [trainer.train() for _ in range(2)]
    trainer.stop()
    return {"sampled": sampled, "steps": [result["timesteps_total"] for result in results]}


def a_policy_that_comes_and_goes(ray):
    """Adds a policy between iterations, trains it, and removes it.

    Ray 1.13 raised in the next iteration where an episode had begun with the policy that is gone.
    """
    if not ray.adds_policies:
        return None
    space = ray.make_env()
    agents = {
        "policies": {"a": (None, space.observation_space, space.action_space, {})},
        "policy_mapping_fn": lambda agent, *_, **__: "a",
    }
    config = config_of(ray, env="pair", env_config={"num_agents": 2}, multiagent=agents)
    config.update(sgd_minibatch_size=BATCH, num_sgd_iter=1, model={"fcnet_hiddens": [4]})
    trainer = ray.trainer("PPO", config)
    known = [sorted(trainer.train()["info"]["learner"])]
    trainer.add_policy(
        "b",
        type(trainer.get_policy("a")),
        observation_space=space.observation_space,
        action_space=space.action_space,
        policy_mapping_fn=lambda agent, *_, **__: "ab"[int(agent)],
    )
    known.append(sorted(trainer.train()["info"]["learner"]))
    known.append(sorted(trainer.workers.local_worker().policy_map))
    trainer.remove_policy("b", policy_mapping_fn=lambda agent, *_, **__: "a")
    known.append(sorted(trainer.workers.local_worker().policy_map))
    trainer.stop()
    return {"known": known}


def a_tune_function(ray):
    """A function reports what it has learned, by `tune.report` or the reporter of before."""
    policy, fragment = ray.Pushing, FRAGMENT
    make_workers = ray.make_workers

    def loop(config, reporter):
        worker = make_workers(policy, fragment).local_worker()
        steps = 0
        for _ in range(config["times"]):
            batch = worker.sample()
            steps += batch.count
            worker.get_policy().learn_on_batch(batch)
            reporter(timesteps_total=steps, learned=float(worker.get_policy().sides.sum()))

    trial = ray.tune(loop, config={"times": 3})
    return {**_of_trial(trial), "keys": sorted(trial.last_result)}


def a_tune_function_with_checkpoints(ray):
    """A function writes checkpoints, and goes on from one."""
    if not ray.function_checkpoints:
        return None
    checkpoint_dir, report = ray.function_checkpoints

    def loop(config, checkpoint_dir=None):
        steps = 0
        if checkpoint_dir:
            steps = json.loads(Path(checkpoint_dir, "state.json").read_text())["steps"]
        for _ in range(config["times"]):
            steps += 5
            with make_folder(step=steps) as folder:
                Path(folder, "state.json").write_text(json.dumps({"steps": steps}))
            report(steps=steps)

    make_folder = checkpoint_dir
    first = ray.tune(loop, config={"times": 2})
    kept = ray.last_checkpoint(first)
    second = ray.tune(loop, config={"times": 3}, restore=kept)
    state = json.loads(Path(kept, "state.json").read_text())
    return {"first": _of_trial(first), "second": _of_trial(second), "state": state}


def _of_trial(trial):
    names = ("timesteps_total", "learned", "steps", "training_iteration", "done")
    result = trial.last_result
    return {"status": trial.status, **{n: result[n] for n in names if n in result}}


LOOPS = (
    a_plan,
    a_plan_that_replays,
    a_plan_that_mixes,
    a_plan_of_gradients,
    a_plan_of_workers,
    a_plan_of_two,
    own_and_random,
    workers_of_a_trainer,
    sampled_before_training,
    a_policy_that_comes_and_goes,
    a_tune_function,
    a_tune_function_with_checkpoints,
)


def play(ray, names=()):
    """What came of each loop, with its name; None of one that this Ray has no means for."""
    for loop in LOOPS:
        if names and loop.__name__ not in names:
            continue
        try:
            yield loop.__name__, loop(ray)
        except MissingError:
            yield loop.__name__, None


class MissingError(Exception):
    """A Ray has not what a loop is made of."""
