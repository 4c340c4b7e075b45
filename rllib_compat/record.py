# Run this in the old Ray, after `trainer.restore(checkpoint)`: record(trainer, "recorded.npz").
# It makes a file for `rllib-compat convert … --recorded recorded.npz`; nothing else is changed.
import numpy as np


def record(trainer, file, rows=32, rng=np.random.RandomState(0)):
    worker = getattr(trainer, "workers", None)
    worker = worker.local_worker() if worker else trainer.local_evaluator  # until Ray 0.6
    found = {}
    for name in worker.policy_map.keys():
        policy = worker.policy_map[name]
        space, known = policy.observation_space, policy.compute_actions.__code__.co_varnames
        seen = np.clip(rng.normal(size=(rows,) + space.shape), space.low, space.high)
        parts = getattr(getattr(policy, "agent_connectors", None), "connectors", [])  # from Ray 2.3
        filters = [p.filter for p in parts if hasattr(p, "filter")] + [worker.filters[name]]
        net_in = np.array([filters[0](row, update=False) for row in seen], np.float32)
        state = [np.tile(np.asarray(s), (rows, 1)) for s in policy.get_initial_state()]
        quiet = {"explore": False} if "explore" in known else {}
        actions, after, extra = policy.compute_actions(net_in, state, **quiet)
        arrays = dict(extra, obs=seen.astype(np.float32), net_in=net_in, action=actions)
        arrays.update(("state_in_%d" % i, s) for i, s in enumerate(state))
        arrays.update(("state_out_%d" % i, s) for i, s in enumerate(after))
        found.update((name + "/" + key, np.asarray(array)) for key, array in arrays.items())
    np.savez(file, **found)
