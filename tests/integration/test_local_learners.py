"""Algorithms whose env runners compute gradients themselves: A3C and DDPPO."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch

from rllib_compat.algorithms.local_learners import get_weights, local_learner
from rllib_compat.ray_versions import env_runners, learners
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]


def test_an_env_runner_of_a3c_gets_the_weights_that_came_of_its_gradients(make, tmp_path):
    old = {"env": "CartPole-v1", "num_workers": 2, "lr": 0.01, "min_iter_time_s": 0}
    trainer = make("A3CTrainer", config=old | {"timesteps_per_iteration": 60})
    algorithm = trainer.algorithm
    made = [deepcopy(algorithm.learner_group.get_weights())]
    learn = algorithm._learn_from

    def remember(computed):
        learn(computed)
        made.append(deepcopy(algorithm.learner_group.get_weights()))

    algorithm._learn_from = remember
    steps = [trainer.train()["timesteps_total"] for _ in range(2)]
    assert steps[0] >= 60
    assert steps[1] >= steps[0] + 60
    assert len(made) > 12  # ten steps each
    theirs = env_runners.foreach_env_runner(
        algorithm.env_runner_group, weights_in_env_runner, local_env_runner=False
    )
    for learned, acts in theirs:
        assert any(equal(learned, weights) for weights in made[1:])
        assert equal(acts, learned)
    assert equal(trainer.get_weights(), made[-1])
    path = trainer.save(str(tmp_path))
    trainer.train()
    trainer.restore(path)
    assert equal(algorithm.learner_group.get_weights(), trainer.get_weights())


def weights_in_env_runner(env_runner):
    """The weights of its learner, and those that it acts by; a critic's may be there, unused."""
    learner = local_learner(env_runner)
    needed = learner.module["default_policy"].get_state(inference_only=True)
    acts = {name: w for name, w in env_runner.module.get_state().items() if name in needed}
    return get_weights(learner), {"default_policy": acts}


def test_env_runners_of_ddppo_average_their_gradients_and_have_the_same_weights(make, tmp_path):
    old = {"env": "CartPole-v1", "num_workers": 2, "num_gpus_per_worker": 0, "lr": 0.01}
    sizes = {"rollout_fragment_length": 10, "sgd_minibatch_size": 16, "num_sgd_iter": 2}
    sizes["kl_coeff"] = 0.3
    sizes["keep_local_weights_in_sync"] = False
    trainer = make("DDPPOTrainer", config={**old, **sizes})
    algorithm = trainer.algorithm
    on_each = partial(
        env_runners.foreach_env_runner, algorithm.env_runner_group, local_env_runner=False
    )
    before = deepcopy(trainer.get_weights())
    result = trainer.train()
    assert result["timesteps_total"] >= 2 * 10 * 5
    told = result["info"]["learner"]["default_policy"]["learner_stats"]
    assert told["cur_kl_coeff"] == pytest.approx(0.3)  # nobody adapts it
    assert equal(trainer.get_weights(), before)  # it was told not to
    path = trainer.save(str(tmp_path))
    after = deepcopy(trainer.get_weights())
    assert not equal(after, before)
    for learned, acts in on_each(weights_in_env_runner):
        assert equal(learned, after)
        assert equal(acts, after)

    fragments = [made_up_batch(seed) for seed in (1, 2)]
    union = {name: torch.cat([part[name] for part in fragments]) for name in fragments[0]}
    learner = learners.local_learner(algorithm)
    expected, _ = mean_gradients(learner, union)
    for means, halved in on_each(partial(means_in_env_runner, fragments=fragments)):
        assert means.keys() == expected.keys()
        for name, mean in means.items():
            np.testing.assert_allclose(mean, expected[name], rtol=1e-5, atol=1e-5)
        for name, half in halved.items():
            np.testing.assert_allclose(half, halved_by_hand(fragments, learner)[name], atol=1e-5)

    trainer.train()
    trainer.restore(path)
    trainer.train()
    (first, _), (second, _) = on_each(weights_in_env_runner)
    assert equal(first, second)
    moments = [max(steps) for steps in on_each(steps_of_optimizer)]
    assert moments == [2 * 2 * -(-50 // 16)] * 2  # of the restored iteration and this one


def made_up_batch(seed):
    """What PPO learns from, of steps that nobody has sampled."""
    random = torch.Generator().manual_seed(seed)
    parts = {"obs": (12, 4), "action_dist_inputs": (12, 2), "advantages": (12,)}
    parts |= {"action_logp": (12,), "value_targets": (12,)}
    batch = {name: torch.randn(*shape, generator=random) for name, shape in parts.items()}
    return {**batch, "actions": torch.randint(0, 2, (12,), generator=random)}


def mean_gradients(learner, batch):
    """The gradients of a batch, averaged with those of the other env runners, by their names."""
    whole = {"default_policy": batch}
    out = learner.module.forward_train(whole)
    loss = learner.compute_losses(fwd_out=out, batch=whole)
    gradients = learner.compute_gradients(loss)
    named = learners.parameters_of(learner)
    own = {name: gradients[learner.get_param_ref(p)].clone() for name, p in named.items()}
    means = learner.average_gradients(gradients)
    return {n: means[learner.get_param_ref(p)].numpy() for n, p in named.items()}, own


def means_in_env_runner(env_runner, fragments):
    """The means of what two env runners compute; and where the second has nothing to say."""
    learner = local_learner(env_runner)
    index = env_runner.worker_index - 1
    means, own = mean_gradients(learner, fragments[index])
    named = learners.parameters_of(learner)
    refs = {name: learner.get_param_ref(parameter) for name, parameter in named.items()}
    first_alone = learner.average_gradients({} if index else {refs[n]: g for n, g in own.items()})
    return means, {name: first_alone[ref].numpy() for name, ref in refs.items()}


def halved_by_hand(fragments, learner):
    """Half of the first fragment's gradients."""
    gradients, _ = mean_gradients(learner, fragments[0])
    return {name: gradient / 2 for name, gradient in gradients.items()}


def steps_of_optimizer(env_runner):
    """How many steps the optimizer of an env runner's learner has made."""
    optimizer = local_learner(env_runner).get_optimizer("default_policy")
    return [int(slots["step"]) for slots in optimizer.state.values()]


def equal(some, others):
    """Whether the weights of the default policy are, that both have."""
    (some,), (others,) = some.values(), others.values()
    return all((some[name] == others[name]).all() for name in some.keys() & others.keys())
