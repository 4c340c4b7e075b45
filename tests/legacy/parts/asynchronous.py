"""What `AsyncRequestsManager` and CRR's models of Ray 2.0.1 do; no Ray runs."""

import sys
import types
from unittest import mock

import gym
import numpy as np
import ray  # noqa: F401 - what is patched
import torch
from ray.rllib.algorithms.crr.torch import CRRModel
from ray.rllib.execution.parallel_requests import AsyncRequestsManager
from ray.rllib.models.torch.misc import SlimFC


class Actor:
    """Keeps what it is asked for as references, which are numbers."""

    made = 0

    def __init__(self, name):
        self.name, self.calls = name, []
        self.apply = types.SimpleNamespace(remote=self._apply)

    def _apply(self, function, *args, **by_name):
        Actor.made += 1
        self.calls.append((Actor.made, function(self, *args, **by_name)))
        Actor.answers[Actor.made] = self.calls[-1][1]
        return Actor.made

    answers = {}  # noqa: RUF012


def asked(actor, times=1, plus=0):
    return f"{actor.name}{times * 10 + plus}"


def wait(references, timeout=None, num_returns=1, **_):
    """Those that are even are done."""
    done = [one for one in references if one % 2 == 0]
    return done, [one for one in references if one % 2]


def get(references):
    """What was answered to one or several."""
    if isinstance(references, int):
        return Actor.answers[references]
    return [Actor.answers[one] for one in references]


def of_requests(found):
    Actor.made, Actor.answers = 0, {}
    first, second, third = actors = [Actor(name) for name in "abc"]
    told = []

    def ready(manager):
        return sorted((actor.name, *map(str, got)) for actor, got in manager.get_ready().items())

    with mock.patch.multiple(sys.modules["ray"], wait=wait, get=get):
        manager = AsyncRequestsManager([first, second], 2)
        told += [ready(manager)]
        told += [manager.call(asked, fn_args=[2]) for _ in range(5)]
        told += [[len(actor.calls) for actor in actors], ready(manager)]
        told += [manager.call(asked, actor=second, fn_kwargs={"plus": 3})]
        told += [manager.call_on_all_available(asked, fn_args=[3])]
        told += [manager.call_on_all_available(asked)]
        told += [manager.get_manager_statistics(), len(manager.workers)]
        try:
            manager.call(asked, actor=third)
        except ValueError:
            told.append("not known")
        manager.add_workers([third])
        told += [manager.call(asked, actor=third), ready(manager)]
        manager.remove_workers([first])
        told += [ready(manager), manager.call(asked), manager.call(asked)]
        manager.remove_workers([third], remove_in_flight_requests=True)
        told += [ready(manager), [len(actor.calls) for actor in actors]]
        one = AsyncRequestsManager([first], 1, 0.1, return_object_refs=True)
        told += [one.call(asked), one.call(asked), ready(one), one.call(asked), ready(one)]
    found["requests"] = [str(value) for value in told]


class Seeing(CRRModel):
    """Sees by one layer."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        self._seen = SlimFC(obs_space.shape[0], num_outputs)

    def forward(self, input_dict, state, seq_lens):
        return self._seen(input_dict["obs"]), state


def of_models(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    config = {"actor_hiddens": [4], "critic_hiddens": [5, 3], "twin_q": True}
    config.update(actor_hidden_activation="tanh", critic_hidden_activation="relu")
    for name, space, actions in (
        ("discrete", gym.spaces.Discrete(3), torch.tensor([0, 2])),
        ("box", gym.spaces.Box(-1.0, 1.0, (2,), np.float32), torch.tensor([[0.1, 0.2], [0.3, 0]])),
    ):
        model = Seeing(box, space, 4, config, "model")
        for number, (_, weight) in enumerate(sorted(model.named_parameters())):
            count = weight.numel()
            made = (torch.arange(count).float() / count - 0.4).reshape(weight.shape)
            weight.data = made + number / 40
        seen, _ = model({"obs": torch.arange(6).float().reshape(2, 3) / 5}, [], None)
        answers = {
            "actor": model.get_policy_output(seen),
            "q": model.get_q_values(seen, actions),
            "twin": model.get_twin_q_values(seen, actions),
        }
        found.update({f"{name}.{part}": value.detach().numpy() for part, value in answers.items()})
        sizes = [len(model.policy_variables()), len(model.q_variables())]
        names = [*model.policy_variables(as_dict=True), *model.q_variables(as_dict=True)]
        found[f"{name}.sizes"], found[f"{name}.names"] = sizes, sorted(names)


QUESTIONS = (of_requests, of_models)
