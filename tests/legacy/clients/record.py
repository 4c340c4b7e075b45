"""Records what the policy clients of a real old Ray send, for tests that send it again.

    python tests/legacy/clients/record.py FOLDER [ADDRESS [ADDRESS OF TWO]]

runs inside of an environment with the old Ray and its `requests`; nothing is sent: what would be
posted is kept, and answered with what the simulator of the session needs. A session is a list of
requests, each pickled as that client did, in base64. With the address of a policy server that has
a policy of four numbers and two actions, a client with local inference is recorded, too; what it
reports is of its own worker. With the address of one that has two of these, `a` and `b`, which maps
the agent `own` to `a`, one of two agents is.
"""

import base64
import functools
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import ray
import requests
from ray.rllib.env.policy_client import PolicyClient


class Answer:
    status_code = 200

    def __init__(self, content):
        self.content = pickle.dumps(content)

    def raise_for_status(self):
        pass


def recorded(simulate):
    """The requests of a simulator that gets 1 for each action."""
    sent = []

    def post(address, data):
        sent.append(base64.b64encode(data).decode())
        observation = pickle.loads(data).get("observation")
        several = isinstance(observation, dict)
        action = dict.fromkeys(observation, 1) if several else 1
        return Answer({"episode_id": "first", "action": action})

    requests.post = post
    simulate(PolicyClient("http://localhost:1", inference_mode="remote"))
    return sent


def one_agent(client, episode=None):
    episode = episode or client.start_episode("first")
    for t in range(6):
        kind = np.float64 if t % 2 else np.float32
        client.get_action(episode, np.array([t, 0.5, -1, 2], kind))
        client.log_returns(episode, np.float32(1.5), info={"t": t, "seen": np.arange(t)})
    client.log_action(episode, [0.0, 1.0, 2.0, 3.0], np.int64(1))
    client.log_returns(episode, 2)
    client.end_episode(episode, np.zeros(4, np.float32))


def untrained(client):
    episode = client.start_episode("first", training_enabled=False)
    client.get_action(episode, np.zeros(4, np.float32))
    client.log_returns(episode, 1.0)
    client.end_episode(episode, np.zeros(4, np.float32))


def two_agents(client, episode=None, names=("a", "b")):
    episode = episode or client.start_episode("first")
    for t in range(6):
        client.get_action(episode, {a: np.full(4, t, np.float32) for a in names})
        rewards = {names[0]: 1.0, names[1]: np.float64(2)}
        client.log_returns(episode, rewards, {names[0]: {"t": t}, names[1]: {}})
    client.end_episode(episode, {a: np.zeros(4, np.float32) for a in names})


def local(address, play=one_agent):
    """The requests of a client that acts by itself until it has reported."""
    reports = []

    def report(address, data):
        answer = post(address, data=data)
        if b"REPORT_SAMPLES" in data:
            reports.append(base64.b64encode(data).decode())
        return answer

    requests.post = report
    client = PolicyClient(address, inference_mode="local")
    while len(reports) < 2:
        play(client, client.start_episode())
    return reports[:2]


if __name__ == "__main__":
    post = requests.post
    sessions = {f.__name__: recorded(f) for f in (one_agent, untrained, two_agents)}
    if len(sys.argv) > 2:
        sessions["local"] = local(sys.argv[2])
    if len(sys.argv) > 3:
        agents = functools.partial(two_agents, names=("own", "b"))
        sessions["local_of_two"] = local(sys.argv[3], agents)
    text = json.dumps({"python": sys.version.split()[0], "sessions": sessions}, indent=1)
    Path(sys.argv[1], ray.__version__ + ".json").write_text(text + "\n")
