"""Adam's old state: under the right names, complete or not at all, and with the same next step."""

import copy
import shutil
from dataclasses import replace

import numpy as np
import pytest

from rllib_compat import Given, convert
from rllib_compat.conversion import complete as resolve
from rllib_compat.conversion.identify import identify_networks
from rllib_compat.errors import CheckpointError
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import DEFAULT, ModelSettings, plan_optimizers
from rllib_compat.networks import read as read_policy
from rllib_compat.networks.optimizers import read, torch_slots, updates_of
from rllib_compat.neutral import GlobalRef, Severity, StandIn, Verdict
from rllib_compat.neutral.spaces import Discrete
from tests.legacy.cases import find
from tests.legacy.networks import given_of
from tests.unit.test_networks import FULLY_CONNECTED

STORED = [case for case in FULLY_CONNECTED if case.version >= (0, 8, 6)]
SWISH = [case for case in STORED if case.framework == "torch" and "swish" in case.variant]
CARRIED = [case for case in STORED if case not in SWISH]
EXACT, DERIVED, RESET, ABSENT = Verdict.EXACT, Verdict.DERIVED, Verdict.RESET, Verdict.ABSENT


def policies_of(case):
    checkpoint = read_checkpoint(case.checkpoint)
    known = any(p.action_space for p in checkpoint.policies.values())
    checkpoint = resolve.complete(checkpoint, Given(algorithm="PPO") if known else given_of(case))
    networks = {}
    for policy_id, policy in checkpoint.policies.items():
        settings = ModelSettings.from_config(checkpoint.config, policy.config)
        networks[policy_id] = read_policy(policy, settings).known
    return checkpoint.policies, networks


def only(cases, **wanted):
    return next(c for c in cases if all(getattr(c, k) == v for k, v in wanted.items()))


def one(case):
    policies, networks = policies_of(case)
    ((policy_id, network),) = networks.items()
    return policies[policy_id], network


TORCH = only(STORED, ray="0.8.7", framework="torch", variant="fc32relu-noshare")
GRAPH = only(STORED, ray="0.8.7", framework="tf", variant="fc32relu-share")
EAGER = only(STORED, ray="1.13.0", framework="tf2", variant="small-relu")


def test_the_museum_has_every_form():
    assert {(c.ray, c.framework, c.stack) for c in CARRIED} >= {
        *((ray, "torch", "old") for ray in ("0.8.7", "1.0.1", "1.9.2", "1.13.0", "2.0.1")),
        *((ray, "torch", "old") for ray in ("2.1.0", "2.3.1", "2.10.0", "2.35.0")),
        *((ray, "torch", "learner") for ray in ("2.7.2", "2.10.0")),
        *((ray, "torch", "new") for ray in ("2.35.0", "2.40.0")),
        *((ray, "tf", "old") for ray in ("0.8.7", "1.0.1", "1.13.0", "2.0.1", "2.3.1")),
        ("1.13.0", "tf2", "old"),
    }


@pytest.mark.parametrize("case", CARRIED, ids=str)
def test_moments_have_the_names_and_shapes_of_their_weights(case):
    policies, networks = policies_of(case)
    states, findings = plan_optimizers(policies, networks)
    assert states
    assert {f.verdict for f in findings} <= {DERIVED, EXACT, ABSENT}
    assert (DERIVED in {f.verdict for f in findings}) == (case.framework == "tf")
    for policy_id, named in states.items():
        state = named[DEFAULT]
        arrays = networks[policy_id].arrays
        assert state.step > 0
        for moments in (state.mean, state.square):
            assert {k: v.shape for k, v in moments.items()} == {
                k: v.shape for k, v in arrays.items()
            }
        assert all((square >= 0).all() for square in state.square.values())


@pytest.mark.parametrize("case", CARRIED, ids=str)
def test_moments_are_those_of_gradients_that_their_weights_can_have(case):
    """What no wrong order would show: which gradients of a network vanish together."""
    policies, networks = policies_of(case)
    states, _ = plan_optimizers(policies, networks)
    for policy_id, named in states.items():
        state = named[DEFAULT]
        for name, square in state.square.items():
            if name.endswith(".bias"):  # a unit without gradient has none in its weights
                dead = square == 0
                assert not state.square[name.replace("bias", "kernel")][:, dead].any()
        if isinstance(policies[policy_id].action_space, Discrete):  # softmax: they add up to 0
            for name in ("logits.kernel", "logits.bias"):
                mean = state.mean[name]
                np.testing.assert_allclose(
                    mean.sum(axis=-1), 0, atol=1e-5 * max(1, np.abs(mean).max())
                )


@pytest.mark.parametrize("case", SWISH, ids=str)
def test_with_slopes_moved_into_the_weights_the_optimizer_starts_anew(case):
    states, (finding,) = plan_optimizers(*policies_of(case))
    assert not states
    assert (finding.verdict, finding.severity) == (RESET, Severity.WARNING)
    assert "slopes of swish" in finding.message


def test_each_form_gives_the_stored_numbers():
    policy, network = one(TORCH)
    state = read(policy, network)[DEFAULT]
    (stored,) = policy.optimizer
    order = stored["param_groups"][0]["params"]
    assert state.step == stored["state"][order[0]]["step"] == 24
    np.testing.assert_array_equal(
        state.mean["logits.kernel"], stored["state"][order[0]]["exp_avg"].T
    )
    np.testing.assert_array_equal(
        state.square["value.bias"], stored["state"][order[-1]]["exp_avg_sq"]
    )

    policy, network = one(GRAPH)
    state = read(policy, network)[DEFAULT]
    scope = "default_policy/default_policy"
    stored = policy.optimizer
    np.testing.assert_array_equal(
        state.mean["hidden.0.kernel"], stored[f"{scope}/fc_1/kernel/Adam"]
    )
    np.testing.assert_array_equal(
        state.square["value.kernel"], stored[f"{scope}/value_out/kernel/Adam_1"]
    )
    assert stored["default_policy/beta1_power"] == pytest.approx(0.9 ** (state.step + 1), rel=1e-5)

    policy, network = one(EAGER)
    state = read(policy, network)[DEFAULT]
    assert state.step == 16
    values = {v.ref.state[2]["name"]: v.ref.state[2]["initial_value"] for v in policy.optimizer}
    np.testing.assert_array_equal(state.mean["logits.bias"], values["Adam/fc_out/bias/m"])


@pytest.mark.parametrize(
    ("case", "epsilon"), [(TORCH, None), (GRAPH, 1e-8), (EAGER, 1e-7)], ids=str
)
def test_torchs_next_step_is_the_one_that_the_old_optimizer_would_have_made(case, epsilon):
    torch = pytest.importorskip("torch")
    policy, network = one(case)
    state = read(policy, network)[DEFAULT]
    slots = torch_slots(state, network)
    weights = network.module_state()
    parameters = {k: torch.nn.Parameter(torch.from_numpy(v.copy())) for k, v in weights.items()}
    adam = torch.optim.Adam(parameters.values(), lr=1e-3)
    numbered = dict(enumerate(slots[name] for name in parameters))
    adam.load_state_dict({**adam.state_dict(), "state": numbered})
    rng = np.random.default_rng(0)
    # Only of gradients that are almost 0 does it show where the epsilon was added.
    draws = {k: rng.normal(size=v.shape).astype(np.float32) for k, v in weights.items()}
    gradients = {k: draw + np.sign(draw) / 10 for k, draw in draws.items()}
    for name, parameter in parameters.items():
        parameter.grad = torch.from_numpy(gradients[name])
    adam.step()

    means, squares = network.target.arrays(state.mean), network.target.arrays(state.square)
    t = state.step + 1
    for name, gradient in gradients.items():
        m = 0.9 * means[name] + 0.1 * gradient.astype(np.float64)
        v = 0.999 * squares[name] + 0.001 * gradient.astype(np.float64) ** 2
        if epsilon is None:
            step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        else:  # `tf.compat.v1.train.AdamOptimizer`, `tf.keras.optimizers.Adam`
            step = m * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) / (np.sqrt(v) + epsilon)
        made = weights[name] - parameters[name].detach().numpy()
        np.testing.assert_allclose(made, 1e-3 * step, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("updates", [0, 1, 16, 500, 800, 900, 20_000])
def test_updates_are_counted_from_the_powers_as_float32_keeps_them(updates):
    powers = [np.float32(0.9), np.float32(0.999)]
    for _ in range(updates):
        powers = [powers[0] * np.float32(0.9), powers[1] * np.float32(0.999)]
    counted = updates_of(*map(float, powers))
    assert counted == pytest.approx(updates, abs=0, rel=1e-3 if updates > 800 else 0)


def test_powers_beyond_all_digits_mean_many_updates_and_other_betas_none():
    assert updates_of(0.0, 0.0) > 80_000
    with pytest.raises(CheckpointError, match="betas"):
        updates_of(0.5**3, 0.999**3)


def _change(part):
    """A torch state of which one part is changed."""

    def changed(states):
        (state,) = copy.deepcopy(states)
        slots = list(state["state"].values())
        return part(state, slots) or [state]

    return changed


BROKEN = {
    "optimizers, its module has 1": _change(lambda s, _: [s, s]),
    "were never updated": _change(lambda s, _: s["state"].popitem() and None),
    "different number of times": _change(lambda _, slots: slots[0].update(step=3)),
    "not plain Adam": _change(lambda _, slots: slots[0].update(max_exp_avg_sq=0)),
    "its betas was": _change(lambda s, _: s["param_groups"][0].update(betas=[0.5, 0.9])),
    "parameters, the network": _change(lambda s, _: s["param_groups"][0]["params"].pop() and None),
    "has moments of shape": _change(lambda _, slots: slots[1].update(exp_avg=np.zeros(9))),
    "no known form": _change(lambda s, _: s.update(state=[])),
    "moments of -1 updates": _change(lambda _, slots: [s.update(step=-1) for s in slots] and None),
    "has no known form (": lambda _: np.ones(3),
    "no powers": lambda _: {"default_policy/fc_1/kernel/RMSProp": np.zeros(3)},
    "no values": lambda _: [StandIn(GlobalRef("tf", "ResourceVariable"))],
}


def test_what_a_ray_rounds_when_it_loads_a_state_goes_over():
    """Ray 2.41 – 2.55 round settings to 32 bits, and make texts of the parameters' numbers."""

    def rounded(state, _):
        (group,) = state["param_groups"]
        group |= {"betas": np.float32([0.9, 0.999]).astype(float).tolist(), "eps": np.float32(1e-8)}
        group |= {"lr": float(np.float32(0.001)), "params": np.array(group["params"]).astype(str)}

    policy, network = one(TORCH)
    told = plan_optimizers({"p": policy}, {"p": network})[1]
    policy = replace(policy, optimizer=_change(rounded)(policy.optimizer))
    assert plan_optimizers({"p": policy}, {"p": network})[1] == told


@pytest.mark.parametrize("reason", BROKEN)
def test_half_a_state_or_another_optimizers_is_left_behind_with_the_reason(reason):
    policy, network = one(TORCH)
    policy = replace(policy, optimizer=BROKEN[reason](policy.optimizer))
    states, (finding,) = plan_optimizers({"p": policy}, {"p": network})
    assert not states
    assert finding.verdict is RESET
    assert reason in finding.message
    assert finding.path == "policies.p.optimizer"


def test_a_damaged_file_of_the_learners_optimizer_costs_only_the_optimizer(tmp_path):
    case = only(STORED, ray="2.7.2", variant="small-relu")
    copied = shutil.copytree(case.checkpoint, tmp_path / "old")
    (file,) = (copied / "learner" / "optimizer_state").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    checkpoint = read_checkpoint(copied)
    assert [f.rule for f in checkpoint.findings if f.path.endswith(".pt")] == ["side-file"]
    assert checkpoint.policies["default_policy"].learner_optimizer is None


def test_a_policy_that_made_no_update_starts_as_it_was():
    policy, network = one(TORCH)
    (stored,) = policy.optimizer
    policy = replace(policy, optimizer=[{**stored, "state": {}}])
    states, (finding,) = plan_optimizers({"p": policy}, {"p": network})
    assert not states
    assert finding.verdict is EXACT


def test_other_settings_are_told():
    policy, network = one(TORCH)
    policy.optimizer[0]["param_groups"][0]["eps"] = 1e-5
    _, (finding,) = plan_optimizers({"p": policy}, {"p": network})
    assert finding.verdict is EXACT
    assert "its eps was 1e-05, and is 1e-08 now" in finding.message


@pytest.mark.parametrize("case", [TORCH, EAGER], ids=str)
def test_the_state_goes_through_our_msgpack_form(case, tmp_path):
    convert(case.checkpoint, tmp_path / "packed", to="msgpack", given=given_of(case), inputs=5)
    policy, network = one(case)
    again = read_checkpoint(tmp_path / "packed").policies[policy.policy_id]
    old, new = read(policy, network)[DEFAULT], read(again, network)[DEFAULT]
    assert old.step == new.step
    for name, mean in old.mean.items():
        np.testing.assert_array_equal(mean, new.mean[name])


def test_a_dry_run_tells_what_will_become_of_the_optimizer(tmp_path):
    given = given_of(TORCH)
    report = convert(TORCH.checkpoint, tmp_path / "new", given=given, dry_run=True).report
    (finding,) = (f for f in report if f.rule == "optimizer")
    assert finding.verdict is EXACT
    assert "24 updates" in finding.message


def test_a_critic_that_never_learned_goes_on_with_moments_of_zero():
    """PG's: no gradient reached it, and torch's Adam has no state for it."""
    policy, network = one(TORCH)
    (stored,) = policy.optimizer
    numbers = stored["param_groups"][0]["params"]
    pairs = zip(policy.weights, numbers, strict=True)
    idle = {str(number) for name, number in pairs if "value" in name}
    left = {number: slot for number, slot in stored["state"].items() if str(number) not in idle}
    stored = {**stored, "state": left}
    states, (finding,) = plan_optimizers({"p": replace(policy, optimizer=[stored])}, {"p": network})
    state = states["p"]["default_optimizer"]
    assert finding.verdict is Verdict.EXACT
    assert "the critic had made no update" in finding.message
    assert all(not state.square[name].any() for name in state.mean if name.startswith("value"))
    assert all(state.square[name].any() for name in state.mean if not name.startswith("value"))


def test_sacs_epsilon_is_todays_and_another_one_is_told():
    """Ray's SAC has 1e-7 on torch, as it always had."""
    (case,) = find(ray="1.13.0", algorithm="SAC", framework="torch", variant="disc")
    given = given_of(case)
    read = resolve.complete(read_checkpoint(case.checkpoint), given)
    completed, networks = identify_networks(read, given)
    (policy,) = completed.policies.values()
    _, (kept,) = plan_optimizers({policy.policy_id: policy}, networks)
    assert "eps" not in kept.message
    for group in policy.optimizer:
        group["param_groups"][0]["eps"] = 1e-8
    _, (other,) = plan_optimizers({policy.policy_id: policy}, networks)
    assert "its eps was 1e-08, and is 1e-07 now" in other.message
