"""The policy server: what clients of real old Rays sent (`tests/legacy/clients`), sent again."""

import base64
import contextlib
import http.client
import itertools
import json
import pickle
import pickletools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.env.external_env import ExternalEnv

from rllib_compat import legacy
from rllib_compat.adapters import CompatRolloutWorker
from rllib_compat.errors import ConfigError
from rllib_compat.runtime.external import PolicyServer, PolicyServerInput, write_answer

RECORDED = sorted((Path(__file__).parents[2] / "legacy/clients").glob("*.json"))
OBS = gymnasium.spaces.Box(-10, 10, (4,), np.float32)
ACT = gymnasium.spaces.Discrete(2)


NAMES = map("{:05}".format, itertools.count())


def sessions(file, name=None):
    """The recorded requests; their episode gets another id of the same length."""
    recorded = json.loads(file.read_text())["sessions"]
    name = (name or next(NAMES)).encode()
    return {
        session: [base64.b64decode(r).replace(b"first", name) for r in requests]
        for session, requests in recorded.items()
    }


class Trainer:
    """A worker whose input is a policy server, as a trainer's own is; without a running Ray."""

    def __init__(self, **settings):
        config = PPOConfig().api_stack(
            enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
        )
        config.environment(observation_space=OBS, action_space=ACT)
        config.env_runners(num_env_runners=0, rollout_fragment_length=7)
        for method, arguments in settings.items():
            getattr(config, method)(**arguments)
        made = []

        def server(context):
            made.append(PolicyServerInput(context, port=0, idle_timeout=5.0))
            return made[0]

        config.offline_data(input_=server)
        self.worker = CompatRolloutWorker(
            env_creator=lambda _: None, config=config, default_policy_class=PPOTorchPolicy
        )
        self.server = made[0]

    def post(self, body, **headers):
        connection = http.client.HTTPConnection("localhost", self.server.server_port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def replay(self, requests):
        """The answers to a session; each is a success."""
        answers = [self.post(request) for request in requests]
        assert {code for code, _ in answers} == {200}, answers
        return [pickle.loads(answer) for _, answer in answers]


@pytest.fixture(scope="module")
def one_agent():
    trainer = Trainer()
    yield trainer
    trainer.worker.stop()


@pytest.fixture(scope="module")
def two_agents():
    spaces = (None, OBS, ACT, {})
    trainer = Trainer(
        multi_agent={
            "policies": {"a": spaces, "b": spaces},
            "policy_mapping_fn": lambda agent, *_, **__: {"own": "a"}.get(agent, agent),
        }
    )
    yield trainer
    trainer.worker.stop()


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_clients_of_old_rays_act_and_what_they_saw_is_sampled(one_agent, file):
    answers = one_agent.replay(sessions(file)["one_agent"])
    assert list(answers[0]) == ["episode_id"]
    actions = [answer["action"] for answer in answers if "action" in answer]
    assert len(actions) == 6
    assert all(ACT.contains(action) for action in actions)
    batch = one_agent.server.next().policy_batches["default_policy"]
    assert batch["obs"].tolist() == [*([t, 0.5, -1, 2] for t in range(6)), [0, 1, 2, 3]]
    assert batch["actions"].tolist() == [*actions, 1]  # the last one is logged by the client
    assert batch["rewards"].tolist() == [1.5] * 6 + [2.0]
    assert [info["t"] for info in batch["infos"][1:]] == [0, 1, 2, 3, 4, 5]
    assert batch["terminateds"].tolist() == [False] * 6 + [True]
    (episode,) = one_agent.worker.get_metrics()
    assert (episode.episode_length, episode.episode_reward) == (7, 11.0)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_several_agents_act(two_agents, file):
    # Six steps are short of a fragment; the first of the next episode completes it.
    two_agents.replay(sessions(file)["two_agents"])
    second = sessions(file)["two_agents"]
    answers = two_agents.replay(second[:5])
    assert set(answers[1]["action"]) == {"a", "b"}
    batches = two_agents.server.next().policy_batches
    assert {name: batch["rewards"].tolist() for name, batch in batches.items()} == {
        "a": [1.0] * 7,
        "b": [2.0] * 7,
    }
    two_agents.replay(second[5:])
    while two_agents.server.next().count:
        pass


def test_episodes_that_are_not_to_be_learned_from_are_answered_and_left_out(one_agent):
    one_agent.replay(sessions(RECORDED[0])["untrained"])
    one_agent.replay(sessions(RECORDED[0])["one_agent"])
    steps = 0
    while count := one_agent.server.next().count:
        steps += count
    assert steps == 7  # with the one that is answered, and not learned from


def test_many_episodes_at_a_time_have_an_answer_each(one_agent):
    seen = []

    def play(name):
        seen.extend(one_agent.post(r)[0] for r in sessions(RECORDED[0], name)["one_agent"])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(play, ("xxxxx", "yyyyy", "zzzzz")))
    assert set(seen) == {200}
    assert sum(one_agent.server.next().count for _ in range(3)) == 21


class Evil:
    def __reduce__(self):
        return print, ("executed",)


def command(name, **more):
    return pickle.dumps({"command": name, "episode_id": "first", **more})


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"", 400, "not a valid pickle"),
        (b"GET / HTTP/1.1", 400, "not a valid pickle"),
        (pickle.dumps([1]), 400, "no command"),
        (pickle.dumps({"command": Evil()}), 400, "no command"),
        (pickle.dumps((Evil(),)), 400, "neither an array nor plain data"),
        (command("SHUTDOWN"), 400, "'SHUTDOWN' is unknown"),
        (command("GET_ACTION", observation=Evil()), 400, "neither an array nor plain data"),
        (command("GET_ACTION", observation=np.array([Evil()])), 400, "neither an array nor plain"),
        (command("GET_ACTION", observation=np.zeros(5)), 400, "not in the space"),
        (command("GET_ACTION", observation=[99.0] * 4), 400, "not in the space"),
        (command("GET_ACTION", observation=np.zeros(4)), 500, "not found|completed"),
        (command("LOG_RETURNS"), 400, "reward"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_requests_are_answered_and_nothing_of_them_runs(one_agent, capsys, body, code, text):
    one_agent.replay(sessions(RECORDED[0])["untrained"])  # so that there is an environment
    status, answer = one_agent.post(body)
    assert status == code
    assert re.search(text, answer.decode()), answer
    assert "executed" not in capsys.readouterr().out
    one_agent.replay(sessions(RECORDED[0])["untrained"])


@pytest.mark.parametrize(
    "headers", [{"Content-Length": "9" * 30}, {"Content-Length": "-1"}, {"Origin": "http://a.b"}]
)
def test_requests_of_unknown_length_and_of_web_pages_are_refused(one_agent, headers):
    assert one_agent.post(command("START_EPISODE"), **headers)[0] == 400


def test_without_clients_the_trainer_gets_empty_batches():
    trainer = Trainer()
    trainer.server._idle_timeout = 0.01
    assert trainer.server.next().count == 0
    with pytest.raises(ConfigError, match="policy server cannot listen"):
        PolicyServer(None, "localhost", trainer.server.server_port)
    trainer.worker.stop()
    PolicyServer(None, "localhost", trainer.server.server_port).server_close()


def test_one_environment_is_served_as_until_ray_0_8():
    class Echo(ExternalEnv):
        def get_action(self, episode_id, observation):
            return int(observation[0])

    server = PolicyServer(Echo(ACT, OBS), port=0)
    start, act = sessions(RECORDED[0])["one_agent"][:2]
    episode = pickle.loads(start)["episode_id"]
    assert server.answer(pickle.loads(start)) == {"episode_id": episode}
    assert server.answer(pickle.loads(act)) == {"action": 0}
    server.server_close()


def test_answers_are_read_by_any_python():
    given = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.int64(3), "c": (True, None)}
    written = write_answer(given)
    assert written[1] == 4
    assert b"_core" not in written  # which numpy 1 does not have
    read = pickle.loads(written)
    np.testing.assert_array_equal(read["a"], given["a"])
    assert read["a"].flags.writeable
    assert (read["b"], read["c"]) == (3, (True, None))


#: What answers may name: all Pythons from 3.6 on have it, and so has every numpy.
EVERYWHERE = {
    *("builtins getattr", "builtins bytearray", "builtins AttributeError"),
    *("pydoc locate", "numpy ndarray", "operator itemgetter", "types SimpleNamespace"),
}


@pytest.fixture
def old_imports():
    legacy.activate()
    yield
    legacy.deactivate()


def asked_for(trainer, ray):
    """The texts in what a client with local inference gets, which has no code."""
    trainer.server._client_ray = ray
    code, answer = trainer.post(command("GET_WORKER_ARGS"))
    assert code == 200, answer
    found, strings = set(), []
    for opcode, value, _ in pickletools.genops(answer):
        if isinstance(value, str):
            strings.append(value)
        if opcode.name == "STACK_GLOBAL":
            found.add(" ".join(strings[-2:]))
    assert b"rllib_compat" not in answer
    assert {name for name in found if "." not in name.split()[0]} <= EVERYWHERE
    return strings


@pytest.mark.usefixtures("old_imports")
@pytest.mark.parametrize("ray", ["0.8.5", "1.0.1", "1.13.0", "2.0.1", "2.8.1"])
def test_clients_with_local_inference_get_names_and_plain_data(ray):
    trainer = Trainer(training={"model": {"vf_share_layers": True, "fcnet_hiddens": [8]}})
    strings = asked_for(trainer, ray)
    assert any(name.endswith(".PPOTorchPolicy") for name in strings)
    assert ("ray.rllib.agents.callbacks.DefaultCallbacks" in strings) == (ray < "2")
    weights = pickle.loads(trainer.post(command("GET_WEIGHTS"))[1])
    assert set(weights["weights"]) == {"default_policy"}
    trainer.server._client_ray = None
    code, answer = trainer.post(command("GET_WORKER_ARGS"))
    assert (code, b"client_ray" in answer) == (400, True)
    trainer.worker.stop()


@pytest.mark.parametrize("ray", ["1.0.1", "1.13.0", "2.0.1", "2.8.1"])
def test_clients_with_local_inference_ask_which_policy_an_agent_has(two_agents, ray):
    strings = asked_for(two_agents, ray)
    assert f"http://localhost:{two_agents.server.server_port}/" in strings
    assert {"ray.rllib.env.policy_client.PolicyClient", "remote", "_send"} <= set(strings)
    answers = {agent: two_agents.post(pickle.dumps(agent)) for agent in ("own", "b", ("b", 3))}
    assert {a: pickle.loads(text) for a, (code, text) in answers.items() if code == 200} == {
        "own": "a",
        "b": "b",
    }
    assert re.search(
        rb"no policy to agent \('b', 3\).*\n.*\n.*by the agent's id alone", answers["b", 3][1]
    )


def test_clients_whose_ray_had_no_local_inference_of_several_agents_are_told(two_agents):
    two_agents.server._client_ray = "0.8.5"
    code, answer = two_agents.post(command("GET_WORKER_ARGS"))
    assert (code, b"Clients of Ray 0.8.5 have no local inference" in answer) == (400, True)


@pytest.mark.parametrize(
    "file", [file for file in RECORDED if "local" in sessions(file)], ids=lambda file: file.stem
)
def test_what_clients_with_local_inference_sampled_is_learned_from(one_agent, file):
    while one_agent.server.next().count:
        pass
    one_agent.worker.get_metrics()
    one_agent.replay(sessions(file)["local"])
    first = one_agent.server.next().policy_batches["default_policy"]
    assert first["obs"][:6].tolist() == [[t, 0.5, -1, 2] for t in range(6)]
    assert first["rewards"][:7].tolist() == [1.5] * 6 + [2.0]
    assert first["terminateds"][:7].tolist() == [False] * 6 + [True]
    assert "dones" not in list(first)
    second = one_agent.server.next()
    assert set(one_agent.worker.learn_on_batch(second)) == {"default_policy"}
    metrics = one_agent.worker.get_metrics()
    assert {(m.episode_length, m.episode_reward) for m in metrics} == {(7, 11.0)}


@pytest.mark.parametrize(
    "file",
    [file for file in RECORDED if "local_of_two" in sessions(file)],
    ids=lambda file: file.stem,
)
def test_what_several_agents_with_local_inference_sampled_is_learned_from(two_agents, file):
    while two_agents.server.next().count:
        pass
    two_agents.replay(sessions(file)["local_of_two"])
    batch = two_agents.server.next()
    assert set(batch.policy_batches) == {"a", "b"}
    first = batch.policy_batches["a"]
    assert first["obs"][:6].tolist() == [[t] * 4 for t in range(6)]
    assert first["rewards"][:6].tolist() == [1.0] * 6
    assert set(two_agents.worker.learn_on_batch(batch)) == {"a", "b"}


@pytest.mark.parametrize(
    "samples",
    [None, 5, Evil(), {"obs": [1]}, np.zeros(3), [Evil()], Evil],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_batch_is_refused(one_agent, capsys, samples):
    code, answer = one_agent.post(command("REPORT_SAMPLES", samples=samples, metrics=[]))
    assert (code, b"no batch" in answer) == (400, True)
    assert "executed" not in capsys.readouterr().out
