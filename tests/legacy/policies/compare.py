"""Holds what policies and models here answer against what those of an old Ray did."""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
RAYS = ("0.8.5", "1.0.1", "1.13.0")

#: How calls begin that raised an error in an old Ray, and → why they may give something here.
ANSWERED = {
    "policy.compute_actions(np.zeros((0, 4)": "an empty batch is no error",
    "policy.compute_actions(obs, [s.tolist() for s in state]": "states may be lists",
    "policy.compute_actions_from_input_dict(": "without a state, it is the initial one",
    "policy.compute_single_action(": "nor here; and lists and whole numbers may be observations",
    "policy.compute_log_likelihoods(actions.tolist()": "so may lists of actions",
    "policy.export_": "torch policies wrote no checkpoint, and before 1.13 no model",
    "policy.set_state(policy.get_state())": "Ray 1.13 failed with its own state",
    "type(policy.compute_gradients(train))": "Ray 1.13 refused padded sequences once",
    "policy.apply_gradients(": "Ray 1.13 failed with SAC's own gradients",
    "policy.loss(": "every learner has a loss, which Ray 0.8 – 1.0, DQN and SAC did not show",
}

#: How calls begin → why they may give something else here.
OTHERWISE = {
    "policy.dist_class.__name__": "Ray 1.13 had a partial for numbers, which has no name",
    "policy.callbacks": "None where the config has none",
    "policy.optimizer": "a list for all algorithms",
    "policy.action_distribution_fn": "modules choose actions themselves",
    "policy.dist_class.required_model_output_shape": "numpy's own integer, by today's Ray",
    "sorted(policy.get_state())": "one form for all eras: that of Ray 1.3 – 1.13",
    "policy.target_model": "targets are parts of the module; a sentence says so",
    "policy.compute_td_error": "learn_on_batch tells it; a sentence says so",
    "policy.q_values": "compute_actions tells them; a sentence says so",
    "policy.model_gpu_towers": "the class of models is another",
    "policy.get_num_samples_loaded_into_buffer": "Ray 1.13 counted batches on a CPU, not steps",
    "policy.get_session()": "no policy has a TensorFlow session; a sentence says so",
    "policy.get_host()": "it is another machine",
    "policy.export_model": "the file that was written is returned",
    "policy.import_model_from_h5": "what is to be done instead is said",
}


_LAYERS = {
    **dict.fromkeys(
        (
            "sorted(tuple(w.shape) for w in policy.get_weights()",
            "len(model.variables())",
            "sorted(map(tuple, (v.shape for v in model.variables())))",
            "sorted(v.numel() for v in model.variables(as_dict=True)",
            "sum(p.numel() for p in model.parameters())",
        ),
        "layers that nothing read are not there; weights are all that today's module has",
    ),
}
#: The same for single cases.
OF_CASE = {
    "ppo": {"sorted(tuple(w.shape)": "today's module has constants among its weights"},
    "ppo-box": {"sorted(tuple(w.shape)": "today's module has constants among its weights"},
    "ppo-lstm": _LAYERS,
    "dqn": {**_LAYERS, "model.value_function()": "no loss ever trained that branch of DQN's"},
    "sac": {
        **_LAYERS,
        "[v.shape for v in model.": "layers are kept as [inputs, outputs]",
        "model.get_policy_output": "both names of Ray 0.8 – 1.13 are there",
        "sorted((tuple(np.shape(g))": "the shapes are others, and the loss draws actions",
    },
}

_OLDER = {
    "policy.kl_coeff": "checkpoints before Ray 1.3 hold no KL coefficient; it begins anew",
    "policy.update_kl(": "so it does here",
    "policy.get_state()['weights']": "weights stood among the rest of a state",
    "policy.extra_action_out(": "tensors, as in Ray 1.13",
    "model.model_config['vf_share_layers']": "PPO's config said it outside of its model",
    "sorted(policy.learn_on_batch": "what a model tells stands beside them, as in Ray 1.13",
    "policy.learn_on_batch(train)": "so it does here",
    "sorted(policy.compute_gradients(train)[1]": "so it does here",
}
#: The same for all cases of a Ray.
OF_RAY = {"0.8.5": _OLDER, "1.0.1": _OLDER, "1.13.0": {}}

#: Calls whose lists, sorted, may have more here.
LONGER = (
    "sorted(model.model_config)",
    "sorted(model.view_requirements)",
    "sorted(policy.view_requirements)",
    "sorted(policy.learn_on",
    "sorted(policy.compute_grad",
)

#: The first call that learns. Where losses draw actions, numbers differ from there on; so they do
#: with checkpoints of Ray 0.8.5, which hold no moments of optimizers. What Ray 1.0.1 had after a
#: step is not what ours has, either, and it is not known why.
LEARNS, DRAWS, STARTS_ANEW = "policy.apply_gradients(", ("sac",), ("0.8.5", "1.0.1")

#: Columns of DQN that were integers in Ray 1.0 where nothing was explored.
_LOG = ("action_logp", "action_prob")


def recorded(ray, case):
    """What was recorded: the folder, and the record; None where that Ray had no such policy."""
    folder = HERE / ray / case
    file = folder / "calls.json"
    return (folder, json.loads(file.read_text())) if file.exists() else None


def differences(ray, case, old, new):
    """The calls whose answers differ, and no row above says why they may.

    Args:
        ray: The old Ray.
        case: The case.
        old: The record of the old Ray.
        new: Ours.

    Returns:
        (call, old answer, new answer) of each.
    """
    found, numbers = [], True
    for (call, theirs), (same, ours) in zip(old["calls"], new["calls"], strict=True):
        assert call == same
        if call.startswith(LEARNS) and (case in DRAWS or ray in STARTS_ANEW):
            numbers = False
        if _error(theirs) == "AttributeError":
            continue  # a name of another era or algorithm, which may be there here
        excused = [
            *OTHERWISE,
            *OF_CASE.get(case, ()),
            *OF_RAY[ray],
            *(ANSWERED if _error(theirs) else ()),
        ]
        if call.startswith(tuple(excused)) or agree(theirs, ours, numbers):
            continue
        if call.startswith(LONGER) and set(theirs["items"]) <= set(ours.get("items", ())):
            continue
        found.append((call, theirs, ours))
    return found


def lost_names(old, new):
    """The names of policy and model that ours have not, or of another kind."""
    return [
        f"{thing}.{name}"
        for thing in ("policy", "model")
        for name, kind in old["names"][thing].items()
        if _kind(new["names"][thing].get(name)) != _kind(kind)
    ]


def unexplained_names(lost, gone):
    """Names that no sentence stands for.

    Args:
        lost: What `lost_names` returned.
        gone: The table of sentences, by object and name.
    """
    said = {f"{thing}.{name}" for thing, names in gone.items() for name in names}
    return [name for name in lost if name not in said and not name.startswith(tuple(OTHERWISE))]


def agree(theirs, ours, numbers=True):
    """Whether two answers are the same, in numbers as well as float32 tells."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if "raises" in theirs or "raises" in ours:
            if ours.get("raises") == "ObservationError":  # numpy and torch had one of theirs
                return "raises" in theirs
            return _error(theirs) == _error(ours)
        if "keys" in theirs and "keys" in ours:  # ours may have more
            return all(
                _agree_as(key, part, ours["keys"].get(key), numbers)
                for key, part in theirs["keys"].items()
            )
        if theirs.keys() != ours.keys():  # numbers were arrays without any axis
            number = theirs["value"][0] if theirs.get("shape") in ([], [1]) else None
            return number is not None and agree(number, ours.get("value"), numbers)
        return all(_agree_as(key, part, ours[key], numbers) for key, part in theirs.items())
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(
            agree(one, other, numbers) for one, other in zip(theirs, ours, strict=True)
        )
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return not numbers or abs(theirs - ours) <= 1e-5 + 2e-4 * abs(theirs)
    return theirs == ours


def _agree_as(key, theirs, ours, numbers):
    """Whether two values of a key are the same."""
    if key in ("dtype", "type"):
        return _integer(theirs) == _integer(ours)
    if key in _LOG and ours is not None:
        return theirs["value"] == ours["value"] if numbers else theirs["shape"] == ours["shape"]
    return agree(theirs, ours, numbers)


def _integer(name):
    """The name of a type; integers have other widths in other Rays, and dicts may be ordered."""
    name = "dict" if name == "OrderedDict" else name
    return re.sub("^int(32|64)$", "int", name)


def _error(answer):
    """The class of an error; torch had one of its own for attributes once."""
    name = answer.get("raises", "") if isinstance(answer, dict) else ""
    return "AttributeError" if name in ("ModuleAttributeError", "GoneError") else name


def _kind(kind):
    if kind is None or kind.startswith("raises"):
        return "none"
    return "callable" if kind == "callable" else "value"
