"""What a caller of `load_policy` gives and gets."""

import subprocess
import sys

import numpy as np
import pytest

import rllib_compat
from rllib_compat import Given, convert
from rllib_compat.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.networks import ModelSettings
from rllib_compat.networks.actions import ActionFitting
from rllib_compat.neutral import spaces
from rllib_compat.policy import preprocessor
from tests.legacy.acting import policies, seen
from tests.legacy.cases import MUSEUM, find

MEANSTD = find(ray="1.13.0", algorithm="PPO", framework="torch", variant="meanstd")[0].checkpoint
TWO = MUSEUM / "0.8.5/ppo-torch-multiagent"


def load(case):
    (policy,) = policies(case).values()
    return policy


@pytest.fixture(scope="module")
def cartpole():
    return rllib_compat.load_policy(MEANSTD, action_space="Discrete(2)")


def test_neither_ray_nor_torch_is_imported():
    code = (
        "import sys, rllib_compat, numpy as np\n"
        f"policy = rllib_compat.load_policy({str(MEANSTD)!r}, action_space='Discrete(2)',"
        "observation_space='Box(4,)')\n"
        "policy.compute_single_action(np.zeros(4), explore=True)\n"
        "assert not {'ray', 'torch', 'tensorflow', 'gymnasium', 'gym'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_action_is_that_of_a_batch_of_one(cartpole):
    batch = np.random.default_rng(0).normal(size=(5, 4))
    together = cartpole.compute_actions(batch)
    for i, observation in enumerate(batch):
        one = cartpole.compute_single_action(observation, full_fetch=True)
        assert one.actions == together.actions[i]
        np.testing.assert_allclose(one.extras["vf_preds"], together.extras["vf_preds"][i])
    assert list(cartpole.compute_actions(list(batch)).actions) == list(together.actions)


def test_exploring_samples_by_the_distribution_and_a_seed_repeats_it(cartpole):
    observations = np.zeros((4000, 4))
    first = cartpole.compute_actions(observations, explore=True, seed=7)
    again = cartpole.compute_actions(observations, explore=True, seed=7)
    assert (first.actions == again.actions).all()
    logits = first.extras["action_dist_inputs"][0]
    likely = np.exp(logits) / np.exp(logits).sum()
    assert abs((first.actions == 1).mean() - likely[1]) < 0.03
    np.testing.assert_allclose(np.exp(first.extras["action_logp"]), likely[first.actions])
    other = cartpole.compute_actions(observations, explore=True)
    assert (first.actions != other.actions).any()


def test_a_checkpoint_of_several_policies_asks_which_one():
    with pytest.raises(MissingInformationError, match=r"2 policies[\s\S]*'car', 'light'"):
        rllib_compat.load_policy(TWO)
    assert rllib_compat.load_policy(TWO, "light").observation_space.shape == (6,)


def test_a_custom_model_is_refused_and_nobody_s_module_imported():
    given = Given(model="no_such_module:Model", action_spaces={None: spaces.Discrete(2)})
    (case,) = find(ray="2.0.1", variant="custommodel")
    with pytest.raises(NotYetError, match="custom model"):
        rllib_compat.load_policy(case.checkpoint, given=given)


def test_observations_of_another_shape_are_an_error_that_says_so(cartpole):
    with pytest.raises(CheckpointError, match=r"\(5,\) are not in the space Box"):
        cartpole.compute_single_action(np.zeros(5))


@pytest.mark.parametrize(
    "batch", [np.zeros((2, 4, 1)), [np.zeros(4), np.zeros(5)], [np.zeros(4), None], ["a", "b"]]
)
def test_observations_are_not_reshaped_and_no_other_numbers(cartpole, batch):
    with pytest.raises(CheckpointError, match="are not in the space Box"):
        cartpole.compute_actions(batch)


@pytest.mark.parametrize("one", ["text", ["0", "1", "0", "1"], [0, [1], 0, 1], None])
def test_what_is_no_observation_is_an_error(cartpole, one):
    with pytest.raises(CheckpointError, match="are not in the space Box"):
        cartpole.compute_single_action(one)


def test_no_action_is_chosen_by_an_output_that_is_no_number(cartpole):
    with pytest.raises(CheckpointError, match="NaN"):
        cartpole.compute_single_action([np.nan, 0.0, 0.0, 0.0])


def test_the_state_goes_from_step_to_step():
    (case,) = find(ray="1.13.0", framework="torch", variant="lstm-prev")
    policy = load(case)
    old = seen(case, "default_policy", policy)
    assert policy.is_recurrent
    assert [part.shape for part in policy.get_initial_state(3)] == [(3, 16), (3, 16)]
    step = policy.compute_single_action(old.observations[0])
    zeros = policy.compute_single_action(old.observations[0], policy.get_initial_state(), 0, 0.0)
    assert np.array_equal(step.state[0], zeros.state[0])
    after = policy.compute_single_action(old.observations[1], step.state, step.actions, 1.0)
    assert not np.array_equal(after.state[0], step.state[0])
    for wrong in ([np.zeros(3), np.zeros(3)], [np.zeros(16), "a"], [[0.0], [[1.0], 2.0]], 7, "ab"):
        with pytest.raises(CheckpointError, match=r"shapes \[\(16,\), \(16,\)\]"):
            policy.compute_single_action(old.observations[0], wrong)
        with pytest.raises(CheckpointError, match="shapes"):
            policy.compute_actions(old.observations[:1], wrong)


def test_a_state_for_a_policy_without_one_is_an_error(cartpole):
    with pytest.raises(CheckpointError, match="no state"):
        cartpole.compute_single_action(np.zeros(4), [np.zeros(3)])


@pytest.mark.parametrize(("algorithm", "ray"), [("DQN", "2.0.1"), ("TD3", "2.0.1")])
def test_what_training_alone_did_is_refused(algorithm, ray):
    case = find(algorithm=algorithm, ray=ray)[0]
    policy = load(case)
    old = seen(case, "default_policy", policy)
    if algorithm == "DQN":
        actions = policy.compute_actions(old.observations, explore=True, seed=1).actions
        assert set(actions) <= {0, 1}
    else:
        with pytest.raises(NotYetError, match="noise"):
            policy.compute_actions(old.observations, explore=True)


@pytest.mark.parametrize("variant", ["meanstd", "lstm-prev", "dictobs"])
def test_a_policy_of_our_msgpack_acts_as_that_of_its_source(variant, tmp_path):
    case = find(ray="1.13.0", algorithm="PPO", framework="torch", variant=variant)[0]
    policy = load(case)
    given = Given(
        observation_spaces={None: policy.observation_space},
        action_spaces={None: policy.action_space},
    )
    convert(case.checkpoint, tmp_path / "new", to="msgpack", given=given)
    again = rllib_compat.load_policy(tmp_path / "new")
    old = seen(case, "default_policy", policy)
    first, second = (p.compute_actions(old.observations, old.state) for p in (policy, again))
    for name, theirs in first.extras.items():
        np.testing.assert_array_equal(second.extras[name], theirs)
    assert not again.network.graph.recurrent or len(second.state) == 2


def prepare(space, inputs, **config):
    settings = ModelSettings.from_config(config, {})
    return preprocessor(space, settings, inputs, where="policies.p")


def test_choices_become_one_hot():
    encode = prepare(spaces.Discrete(3), (3,))
    assert encode(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    encode = prepare(spaces.Discrete(3, start=5), (3,))
    assert encode([6]).tolist() == [[0, 1, 0]]
    several = prepare(spaces.MultiDiscrete((2, 3)), (5,))
    assert several([[1, 2]]).tolist() == [[0, 1, 0, 0, 1]]
    with pytest.raises(CheckpointError, match="choice"):
        several([[2, 0]])


def test_a_choice_is_not_cut_to_an_integer():
    encode = prepare(spaces.Discrete(3), (3,))
    with pytest.raises(CheckpointError, match="a choice is an integer"):
        encode([0, 0.5])


def test_the_numbers_of_a_multidiscrete_are_taken_as_they_are_where_the_network_did():
    assert prepare(spaces.MultiDiscrete((2, 3)), (2,))([[1, 2]]).tolist() == [[1, 2]]


def test_the_memory_of_an_atari_is_shifted_as_rllib_did():
    box = spaces.box(0, 255, (128,), "uint8")
    whole = np.full((1, 128), 255, np.uint8)
    assert prepare(box, (128,))(whole).max() == 127 / 128
    assert prepare(box, (128,), _disable_preprocessor_api=True)(whole).max() == 255


def test_whole_frames_of_an_atari_are_scaled_and_scaled_ones_taken():
    frames = prepare(spaces.box(0, 255, (210, 160, 3), "uint8"), (84, 84, 3))
    assert frames(np.zeros((2, 84, 84, 3))).shape == (2, 84, 84, 3)
    assert frames(np.full((2, 210, 160, 3), 192, np.uint8)).max() == 0.5
    with pytest.raises(CheckpointError, match="another size"):
        frames(np.zeros((2, 80, 80, 3), np.uint8))


def test_parts_lie_in_the_order_of_the_space():
    space = spaces.DictSpace({"b": spaces.Discrete(2), "a": spaces.box(-1, 1, (2,))})
    encode = prepare(space, (4,))
    listed = [{"a": [0.5, 0.25], "b": 1}, {"a": [0.0, 0.0], "b": 0}]
    batched = {"a": np.array([[0.5, 0.25], [0.0, 0.0]]), "b": np.array([1, 0])}
    assert encode(listed).tolist() == [[0, 1, 0.5, 0.25], [1, 0, 0, 0]]
    assert encode(batched).tolist() == encode(listed).tolist()
    for other in ({"a": [0.0, 0.0]}, {"a": [0.0, 0.0], "b": 1, "c": 2}):
        with pytest.raises(CheckpointError, match="KeyError"):
            encode([other])


def test_a_tuple_has_as_many_parts_as_its_space():
    encode = prepare(spaces.TupleSpace((spaces.Discrete(2), spaces.Discrete(3))), (5,))
    assert encode([(1, 2)]).tolist() == [[0, 1, 0, 0, 1]]
    for other in ((1,), (1, 2, 0)):
        with pytest.raises(CheckpointError, match="are not in the space"):
            encode([other])


def test_actions_are_stretched_or_clipped_to_their_space():
    space = spaces.TupleSpace((spaces.box(0.0, 4.0, (1,)), spaces.Discrete(2)))
    given = (np.array([[-1.0], [0.5], [3.0]]), np.array([0, 1, 1]))
    stretched = ActionFitting(unsquash=True, clip=False)(given, space)
    assert stretched[0].ravel().tolist() == [0.0, 3.0, 4.0]
    assert stretched[1].tolist() == [0, 1, 1]
    clipped = ActionFitting(unsquash=False, clip=True)(given, space)
    assert clipped[0].ravel().tolist() == [0.0, 0.5, 3.0]
    unbounded = spaces.box(-np.inf, np.inf, (1,))
    assert ActionFitting(unsquash=True, clip=False)(given[0], unbounded) is given[0]
