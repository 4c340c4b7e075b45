"""An iteration in which a network has come to NaN says so, and what to do."""

from types import SimpleNamespace

import pytest

pytest.importorskip("ray")

import torch
from ray.rllib.utils.replay_buffers import replay_buffer

from rllib_compat import Trainer
from rllib_compat.errors import CompatError

NAN = torch.full((2,), torch.nan)


def step(train):
    """An iteration of a trainer whose algorithm does this."""
    algorithm = SimpleNamespace(train=train)
    return Trainer.step(SimpleNamespace(algorithm=algorithm, call_hook=lambda *_: None))


@pytest.mark.parametrize(
    "draws",
    [
        lambda: torch.distributions.Normal(NAN, NAN.exp()),
        lambda: torch.distributions.Normal(torch.zeros(2), torch.full((2,), -200.0).exp()),
        lambda: torch.distributions.Categorical(logits=NAN),
        lambda: torch.multinomial(NAN, 1),
    ],
)
def test_an_iteration_that_comes_to_nan_says_what_to_do(draws):
    with pytest.raises(CompatError, match="no numbers any more") as error:
        step(draws)
    assert error.value.where
    assert "lr" in error.value.fix


def test_a_replay_buffer_that_takes_more_memory_than_there_is_names_its_size(monkeypatch):
    monkeypatch.setattr(replay_buffer, "log_once", lambda _: True)
    frame = SimpleNamespace(count=1, size_bytes=lambda: 84_800)
    with pytest.raises(CompatError, match=r"848000\.0 GB") as error:
        step(lambda: replay_buffer.warn_replay_capacity(item=frame, num_items=10**10))
    assert error.value.where == "buffer_size"


def test_other_errors_are_the_users():
    def fails():
        raise ValueError("my own")

    with pytest.raises(ValueError, match="my own"):
        step(fails)
