"""What the operators of execution plans do, as a list of cases that runs on any Ray.

`play` runs all of them with the operators that it is given. `record.py` does so inside an old Ray,
and `tests/unit/runtime/test_execution_operators.py` here. It runs on Python 3.8, too.
"""

import queue
import time

import numpy as np
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.util.iter import LocalIterator
from ray.util.iter_metrics import SharedMetrics

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def play(find, names=CASES):
    """Runs cases: the name of each, and what came of it as plain data.

    Args:
        find: Gives an operator by the module below `ray.rllib` and its name.
        names: Which cases.
    """
    return {name: _plain(CASES[name](find)) for name in names}


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return list(value.tolist())
    value = value.item() if isinstance(value, np.generic) else value
    return "nan" if isinstance(value, float) and value != value else value


def flow(*items):
    """A flow of these items."""
    return LocalIterator(lambda timeout: iter(items), SharedMetrics())


def batch(size, start=0):
    return SampleBatch({"obs": np.arange(start, start + size, dtype=np.float32)})


def of_two(size):
    return MultiAgentBatch({"a": batch(size), "b": batch(2 * size)}, size)


def steps(operator, counts, counter="num_steps_sampled"):
    """Those of the counts at which an operator lets an item pass."""
    shared = flow()

    def count(number):
        shared.get_metrics().counters[counter] = number
        return number

    return list(flow(*counts).for_each(count).filter(operator))


def raises(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception:  # each Ray has its own
        return True
    return False


class Worker:
    """Says what it is asked for, and computes nothing."""

    def __init__(self, trained=("default_policy",)):
        self.trained = list(trained)
        self.told = []
        self.policy_map = {name: Target(name, self.told) for name in ("default_policy", "a", "b")}

    def get_policies_to_train(self, batch=None):
        return self.trained

    def is_policy_to_train(self, policy, batch=None):
        return policy in self.trained

    def get_policy(self, policy):
        return self.policy_map[policy]

    def foreach_policy_to_train(self, function):
        return [function(self.policy_map[name], name) for name in self.trained]

    def compute_gradients(self, samples, single_agent=None):
        self.told.append(["compute", samples.count, bool(single_agent)])
        return [np.full(2, float(samples.count))], {"learner_stats": {"n": samples.count}}

    def apply_gradients(self, gradients):
        self.told.append(["apply", gradients])

    def set_global_vars(self, known):
        self.told.append(["known", dict(known)])

    def get_weights(self, policies=None):
        return {"of": list(policies)}

    def get_metrics(self):
        return []


class Target:
    def __init__(self, name, told):
        self.name, self.told = name, told

    def update_target(self):
        self.told.append(["target", self.name])


class Workers:
    def __init__(self, **more):
        self.local = Worker(**more)

    def local_worker(self):
        return self.local

    def remote_workers(self):
        return []


@case
def once_in_so_many_steps(find):
    once = find("execution.metric_ops", "OncePerTimestepsElapsed")
    counts = [3, 9, 10, 11, 19, 20, 21, 40, 41]
    return {
        "every 10": steps(once(10), counts),
        "every 10 trained": steps(once(10, by_steps_trained=True), counts, "num_steps_trained"),
        "every 10 trained, none": steps(once(10, by_steps_trained=True), counts),
        "always": steps(once(0), counts),
        "never": steps(once(100), counts),
    }


@case
def once_in_a_while(find):
    once = find("execution.metric_ops", "OncePerTimeInterval")
    real, now, seen = time.time, [0.0], {}
    time.time = lambda: 1e9 + now[0]
    try:
        for delay in (None, 0, 5):
            operator, seen[delay] = once(delay), []
            for now[0] in (0, 1, 4.5, 5.5, 6, 10, 11, 30):
                if operator(None):
                    seen[delay].append(now[0])
    finally:
        time.time = real
    return seen


@case
def after_so_many_steps(find):
    wait = find("execution.replay_ops", "WaitUntilTimestepsElapsed")
    return [steps(wait(target), [5, 10, 11, 4, 12]) for target in (0, 10, 100)]


@case
def a_buffer_of_batches(find):
    make = find("execution.replay_ops", "SimpleReplayBuffer")
    kept = {}
    for slots in (0, 1, 3):
        buffer = make(slots)
        for start in range(5):
            buffer.add_batch(batch(1, start))
        drawn = {float(buffer.replay()["obs"][0]) for _ in range(200)} if slots else set()
        kept[slots] = [
            len(buffer),
            sorted(float(b["obs"][0]) for b in buffer.replay_batches),
            sorted(drawn),
        ]
    return {**kept, "empty": raises(make(3).replay)}


@case
def a_mix_of_new_and_old(find):
    mix = find("execution.replay_ops", "MixInReplay")
    seen = {}
    for slots, proportion in ((0, 0), (3, 0), (3, 1), (3, 2), (1, 3), (3, 0.5), (3, 1.5)):
        operator = mix(slots, proportion)
        lengths, oldest = set(), 0
        for number in range(300):
            first, *others = operator(batch(1, number))
            assert first["obs"][0] == number
            lengths.add(len(others))
            oldest = max([oldest, *(number - float(b["obs"][0]) for b in others)])
        seen[f"{proportion} of {slots}"] = [sorted(lengths), oldest]
    return {**seen, "1 of 0": raises(mix, 0, 1), "0 of 0": raises(mix, 0, 0)}


@case
def batches_together(find):
    concat = find("execution.rollout_ops", "ConcatBatches")
    sizes = (3, 0, 4, 3, 12, 1)
    one, two = concat(10), concat(10, count_steps_by="agent_steps")
    large = [b.count for b in flow(*map(batch, sizes)).combine(one)]
    agents = [[b.count, b.agent_steps()] for b in flow(*map(of_two, sizes)).combine(two)]
    return {"large": large, "left": [one.count, len(one.buffer)], "agents": agents}


@case
def a_choice_of_policies(find):
    select = find("execution.rollout_ops", "SelectExperiences")
    worker = Worker(trained=["b"])

    def chosen(*given, **named):
        left = select(*given, **named)(of_two(4))
        return sorted(left.policy_batches), left.count

    return {
        "a": chosen(["a"]),
        "both": chosen({"a", "b", "c"}),
        "none": chosen([]),
        "trained": chosen(local_worker=worker),
        "trained, whatever is named": chosen(["a"], local_worker=worker),
        "one agent": select(["a"])(batch(4)).count,
        "nothing given": raises(select),
    }


@case
def standard_fields(find):
    scale = find("execution.rollout_ops", "StandardizeFields")
    flat = SampleBatch({"obs": np.ones(3, np.float32), "up": np.array([1.0, 2.0, 6.0])})
    scaled = scale(["obs", "up", "missing"])(flat)
    two = scale(["obs"])(of_two(3)).policy_batches
    return [scaled["obs"], scaled["up"], two["a"]["obs"], two["b"]["obs"]]


@case
def flows_side_by_side(find):
    beside = find("execution.concurrency_ops", "Concurrently")

    def two(**named):
        return beside([flow(1, 2, 3, 4), flow("a", "b")], **named)

    return {
        "in turn": list(two()),
        "async": sorted(map(str, two(mode="async"))),
        "second": list(two(output_indexes=[1])),
        "no index": list(two(output_indexes=[])),
        "first, async": list(two(mode="async", output_indexes=[0])),
        "two to one": list(two(round_robin_weights=[2, 1])),
        "two to one, second": list(two(round_robin_weights=[2, 1], output_indexes=[1])),
        "all to one": list(two(round_robin_weights=["*", 1])),
        "refused": [
            raises(beside, [flow(1)]),
            raises(two, mode="random"),
            raises(two, mode="async", round_robin_weights=[1, 2]),
            raises(two, round_robin_weights=["*", "*"]),
            raises(two, output_indexes=[2]),
        ],
    }


@case
def a_queue(find):
    enqueue = find("execution.concurrency_ops", "Enqueue")
    dequeue = find("execution.concurrency_ops", "Dequeue")
    waiting, alive = queue.Queue(2), [True, True, True, False]
    put = enqueue(waiting)
    told = [put(item) for item in ("x", "y", "z")]
    taken = dequeue(waiting, check=lambda: alive.pop(0))
    items = [next(taken), next(taken)]
    return {
        "told": told[:2],
        "full": type(told[2]).__name__,
        "taken": items,
        "dead": raises(lambda: [next(taken), next(taken)]),
        "no queue": [raises(enqueue, []), raises(lambda: next(dequeue([])))],
    }


def counted(function, **counters):
    """What a function returns inside a plan with these counters, and the counters then."""
    shared, seen = flow(), []

    def run(_):
        metrics = shared.get_metrics()
        metrics.counters.update(counters)
        seen.append(function(metrics))
        seen.append({k: v for k, v in sorted(metrics.counters.items()) if v})
        return 0

    list(flow(0).for_each(run))
    return seen


@case
def gradients(find):
    compute = find("execution.train_ops", "ComputeGradients")
    apply = find("execution.train_ops", "ApplyGradients")
    average = find("execution.train_ops", "AverageGradients")
    workers = Workers()

    def one(metrics):
        item = compute(workers)(batch(4))
        nothing = apply(workers)(item)
        return [item, nothing, metrics.info["learner"], sorted(metrics.timers)]

    done = counted(one, num_steps_sampled=7)
    # A worker that gets nothing it was not asked for: before or after is a detail of each Ray.
    return {
        "done": done,
        "told": sorted(workers.local.told, key=str),
        "sum": average()([([np.ones(2), np.zeros(1)], 4), ([np.ones(2), np.ones(1)], 8)]),
        "one": average()([([np.ones(2)], 4)]),
        "no gradients": counted(lambda _: raises(apply(workers), 5)),
        "from nowhere": counted(
            lambda _: raises(apply(workers, update_all=False), ([np.ones(2)], 4))
        )[0],
    }


@case
def gradients_of_one_worker(find):
    apply = find("execution.train_ops", "ApplyGradients")
    sent = []

    class Remote:
        class set_weights:
            @staticmethod
            def remote(weights, known):
                sent.append([weights, known])

    def run(metrics):
        metrics.current_actor = Remote
        return apply(Workers(trained=["a"]), update_all=False)(([np.ones(2)], 4))

    def named(metrics):
        metrics.current_actor = Remote
        return apply(Workers(), policies=["b"], update_all=False)(([np.ones(2)], 4))

    return [counted(run, num_steps_sampled=9)[1], counted(named)[1], sent]


@case
def targets(find):
    update = find("execution.train_ops", "UpdateTargetNetwork")
    seen = {}
    for name, counter, more in (
        ("sampled", "num_steps_sampled", {}),
        ("trained", "num_steps_trained", {"by_steps_trained": True}),
        ("named", "num_steps_sampled", {"policies": ["b", "default_policy"]}),
    ):
        workers = Workers(trained=["a", "b"])
        operator, shared, rows = update(workers, 10, **more), flow(), []

        def run(count, operator=operator, shared=shared, rows=rows, counter=counter):
            metrics = shared.get_metrics()
            metrics.counters[counter] = count
            operator(None)
            names = ("num_target_updates", "last_target_update_ts")
            rows.append([count, *(metrics.counters[name] for name in names)])
            return 0

        list(flow(4, 9, 10, 12, 20, 35, 44).for_each(run))
        seen[name] = [rows, workers.local.told]
    return seen


@case
def a_result(find):
    collect = find("execution.metric_ops", "CollectMetrics")

    def run(trained):
        def told(metrics):
            metrics.info.update({"learner": {"a": {"x": 1}}, "custom_metrics": {"mine": 3}})
            metrics.timers["learn"].push(0.5)
            metrics.timers["learn"].push_units_processed(20)
            metrics.timers["wait"].push(0.25)
            operator = collect(Workers(), by_steps_trained=trained)
            first, second = operator(None), operator(None)
            keys = (
                "num_healthy_workers timesteps_total timesteps_this_iter agent_timesteps_total "
                "timers custom_metrics"
            )
            return {
                **{key: first[key] for key in keys.split()},
                "info": {k: v for k, v in sorted(first["info"].items()) if v},
                "told once": second["custom_metrics"],
            }

        return counted(
            told,
            num_steps_sampled=30,
            num_steps_trained=20,
            num_steps_trained_this_iter=10,
            num_agent_steps_sampled=60,
        )[0]

    return [run(False), run(True)]


@case
def copies_of_an_environment(find):
    make = find("env.multi_agent_env", "make_multi_agent")
    given = []

    class Counter:
        observation_space, action_space = "obs", "actions"

        def __init__(self, config):
            given.append(dict(config))
            self.length = config.get("length", 2)

        def reset(self):
            self.at = 0
            return [self.at]

        def step(self, action):
            self.at += 1
            return [self.at], float(action), self.at == self.length, {"at": self.at}

        def render(self, mode="human"):
            return "drawn"

    env = make(Counter)({"num_agents": 2, "length": 2})
    seen = [env.reset(), env.step({0: 1, 1: 2}), env.step({0: 3}), env.step({1: 4})]
    again = [env.reset(), env.step({0: 1}), env.render()]
    alone = make(Counter)()
    return [seen, again, alone.reset(), alone.step({0: 1}), given, env.observation_space]


@case
def a_summary_of_episodes(find):
    summarize = find("evaluation.metrics", "summarize_episodes")
    episode = find("evaluation.metrics", "RolloutMetrics")
    nan = float("nan")
    one = [
        episode(
            episode_length=5 + number,
            episode_reward=reward,
            agent_rewards={(0, "default_policy"): reward},
            custom_metrics={"n": number, "odd": value, "array": np.arange(2.0) * number},
            hist_data={"speeds": [number] * 2, "episode_reward": [0.0]},
            media={"clip": {"at": number}},
        )
        for number, reward, value in ((0, 1.0, nan), (1, 3.0, 2.0), (2, 8.0, nan))
    ]
    two = [
        episode(
            episode_length=4,
            episode_reward=3.0 * factor,
            agent_rewards={(0, "a"): factor, (1, "b"): 1.5 * factor, (2, "default_policy"): 0.5},
            custom_metrics={"never": nan} if factor == 1.0 else {},
        )
        for factor in (1.0, 2.0)
    ]
    kinds = ("min", "max", "mean")
    keys = [f"{whose}_reward_{kind}" for whose in ("episode", "policy") for kind in kinds]
    keys += ["episode_len_mean", "episodes_this_iter", "episode_media"]
    keys += ["custom_metrics", "hist_stats"]

    def told(*arguments, **named):
        result = summarize(*arguments, **named)
        return {key: result[key] for key in keys}

    return {
        "one agent": told(one),
        "some are new": told(one, one[2:]),
        "kept as they are": told(one, keep_custom_metrics=True),
        "three agents": told(two),
        "no episode": told([]),
    }
