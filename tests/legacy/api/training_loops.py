"""Training loops of one's own, as people wrote them around workers of Ray 0.8 – 1.13.

`play` runs each of them and tells what came of it: how many steps, and which keys results have. It
runs on Python 3.7 with an old Ray, and on ours.
"""

import numpy as np

STEPS = 40


def make_policy(base):
    """A policy without any model: it pushes to one side, and learns which from the rewards."""

    class Pushing(base):
        def __init__(self, observation_space, action_space, config):
            base.__init__(self, observation_space, action_space, config)
            self.sides = np.zeros(2)

        def compute_actions(self, obs_batch, state_batches=None, *args, **kwargs):
            return np.full(len(obs_batch), int(self.sides.argmax())), [], {}

        def learn_on_batch(self, samples):
            self.sides += np.bincount(samples["actions"], samples["rewards"], minlength=2)
            return {"learner_stats": {"steps": int(samples.count)}}

        def compute_gradients(self, samples):
            gradients = [np.bincount(samples["actions"], samples["rewards"], minlength=2)]
            return gradients, {"learner_stats": {"steps": int(samples.count)}}

        def apply_gradients(self, gradients):
            self.sides += gradients[0]

        def get_weights(self):
            return {"sides": self.sides}

        def set_weights(self, weights):
            self.sides = np.array(weights["sides"])

    return Pushing


def make_workers(ray, policy=None):
    """A set of workers: the local one alone."""
    config = dict(ray.COMMON_CONFIG, rollout_fragment_length=STEPS, num_workers=0)
    config["framework"] = "torch"
    if hasattr(ray, "update_config"):
        config.update(ray.update_config)
    policy = policy or make_policy(ray.Policy)
    return ray.WorkerSet(ray.make_env, **{ray.policy_argument: policy}, trainer_config=config)


def workers_and_a_policy(ray):
    """Samples in a worker and learns in its policy."""
    workers = make_workers(ray)
    worker = workers.local_worker()
    steps = 0
    for _ in range(3):
        batch = worker.sample()
        steps += batch.count
        worker.get_policy().learn_on_batch(batch)
    metrics = ray.collect_metrics(worker, workers.remote_workers())
    learned = worker.for_policy(lambda policy: float(policy.sides.sum()))
    return {"steps": steps, "learned": learned, "keys": sorted(metrics)}


def learn_in_the_worker(ray):
    """Samples and learns in a worker, and carries its weights to another."""
    first, second = make_workers(ray), make_workers(ray)
    info = first.local_worker().learn_on_batch(first.local_worker().sample())
    weights = first.local_worker().get_weights()
    second.foreach_worker(lambda worker: worker.set_weights(weights))
    told = second.foreach_policy(lambda policy, policy_id: [policy_id, float(policy.sides.sum())])
    stats = info.get("default_policy", info)["learner_stats"]
    return {"told": told, "learned": stats["steps"]}


def gradients(ray):
    """Computes gradients in one worker and applies them in another."""
    first, second = make_workers(ray), make_workers(ray)
    computed, _ = first.local_worker().compute_gradients(first.local_worker().sample())
    second.local_worker().apply_gradients(computed)
    return {"learned": float(second.local_worker().get_policy().sides.sum())}


def batches_together(ray):
    """Concatenates samples, shuffles them and learns from parts."""
    worker = make_workers(ray).local_worker()
    batch = ray.SampleBatch.concat_samples([worker.sample() for _ in range(3)])
    batch.shuffle()
    parts = [batch.slice(start, start + 30) for start in range(0, batch.count, 30)]
    for part in parts:
        worker.get_policy().learn_on_batch(part)
    return {"steps": batch.count, "parts": [part.count for part in parts]}


def an_optimizer(ray):
    """A policy optimizer of Ray 0.5 – 0.8."""
    if ray.SyncSamplesOptimizer is None:
        return None
    optimizer = ray.SyncSamplesOptimizer(make_workers(ray), train_batch_size=100)
    told = [optimizer.step() for _ in range(2)]
    result = optimizer.collect_metrics(180)
    return {
        "told": told,
        "counted": [optimizer.num_steps_sampled, optimizer.num_steps_trained, optimizer.save()],
        "keys": sorted(result),
        "info": sorted(result["info"]),
    }


def replaying_optimizers(ray):
    """Policy optimizers of Ray 0.5 – 0.8 that replay steps, and whole batches."""
    if ray.SyncReplayOptimizer is None:
        return None
    one = ray.SyncReplayOptimizer(
        make_workers(ray),
        learning_starts=60,
        buffer_size=100,
        train_batch_size=30,
        prioritized_replay=False,
    )
    two = ray.SyncBatchReplayOptimizer(
        make_workers(ray), learning_starts=60, buffer_size=100, train_batch_size=50
    )
    return {
        "steps": [one.step() for _ in range(4)],
        "learned": float(one.workers.local_worker().get_policy().sides.sum()),
        "counted": one.save(),
        "keys": sorted(one.stats()),
        "learner": one.stats()["learner"],
        "of batches": [[two.step(), two.save()][1] for _ in range(4)],
    }


def an_optimizer_of_gpus(ray):
    """The policy optimizer of Ray 0.5 – 0.8 that kept a batch on GPUs; here on the CPU."""
    if ray.LocalMultiGPUOptimizer is None:
        return None
    workers = ray.make_gpu_workers()
    arguments = {"sgd_batch_size": 16, "num_sgd_iter": 2, "train_batch_size": 100}
    optimizer = ray.LocalMultiGPUOptimizer(workers, standardize_fields=["rewards"], **arguments)
    minibatches = ray.watch_minibatches(optimizer)
    told = [sorted(optimizer.step()) for _ in range(2)]
    result = optimizer.collect_metrics(180)
    return {
        "told": told,
        "minibatches": [len(minibatches), sorted(set(minibatches))],
        "counted": [optimizer.num_steps_sampled, optimizer.num_steps_trained, optimizer.save()],
        "learner": sorted(result["info"]["learner"]),
        "keys": sorted(result),
        "info": sorted(result["info"]),
    }


LOOPS = (
    workers_and_a_policy,
    learn_in_the_worker,
    gradients,
    batches_together,
    an_optimizer,
    an_optimizer_of_gpus,
    replaying_optimizers,
)


def play(ray):
    """What came of each loop, by its name."""
    return {loop.__name__: loop(ray) for loop in LOOPS}
