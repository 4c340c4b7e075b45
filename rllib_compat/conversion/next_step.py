"""Code for the next step with a converted checkpoint.

Facts of the checkpoint are filled in. Objects that only the user has (an environment, the mapping
of agents to policies, recordings) have a name in the code, and a comment that describes them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from rllib_compat.conversion.given import Given
from rllib_compat.conversion.plan import Plan
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.choices import Form
from rllib_compat.neutral.report import Verdict

#: The largest length of a space's text.
_SPACE = 60
#: The largest number of policy ids.
_POLICIES = 4


def describe_next_step(plan: Plan, target: str | Path, given: Given) -> str:
    """Returns the code that continues training from a checkpoint, or acts with it.

    Returns:
        Python code or a command, below a line with its purpose; empty for files for other
        libraries, and for unknown networks.
    """
    if plan.form is Form.ALGORITHM:
        return _train(plan, target, given)
    if plan.form in (Form.MODULES, Form.POLICY, Form.HUB):
        return _act(plan, target)
    if plan.form is Form.MSGPACK and plan.networks:
        model = ["--model", given.model] if given.model else []
        command = shlex.join(["rllib-compat", "convert", str(target), f"{target}-trains", *model])
        return f"to continue training:\n  {command}"
    return ""


def _train(plan: Plan, target: str | Path, given: Given) -> str:
    arguments, notes = [repr(str(target))], list[str]()
    rules = {finding.rule for finding in plan.findings if finding.verdict is not Verdict.DROPPED}
    policies = plan.checkpoint.policies
    if "environment" in rules or not (given.env is None or isinstance(given.env, str)):
        arguments.append("env=MyEnv")
        notes.append(f"MyEnv: the class of your environment, {_describe_spaces(policies)}")
    if "policy-mapping" in rules and len(policies) == 1:
        arguments.append(f"policy_mapping_fn=lambda *_, **__: {next(iter(policies))!r}")
    elif "policy-mapping" in rules:
        arguments.append("policy_mapping_fn=policy_of")
        listed = [repr(policy_id) for policy_id in policies][:_POLICIES]
        ids = ", ".join([*listed, "…"] if len(policies) > _POLICIES else listed)
        notes.append(f"policy_of(agent_id, *args, **kwargs): which of {ids} an agent has")
    if "offline-data" in rules:
        arguments.append('input="/path/to/recordings"')
        notes.append("input: your recorded steps, of any Ray")
    if given.model:
        arguments.append(f"given=compat.Given(model={given.model!r})")
    lines = [
        *(f"# {note}" for note in notes),
        "import rllib_compat as compat",
        f"algorithm = compat.load({', '.join(arguments)})",
        "algorithm.train()",
    ]
    return "\n  ".join(["to continue training, in Python:", *lines])


def _describe_spaces(policies: Mapping[str, PolicyState]) -> str:
    if len(policies) != 1:
        return "with the agents' spaces that `rllib-compat inspect` lists"
    (policy,) = policies.values()
    seen, acts = (
        text if len(text) <= _SPACE else f"{text[:_SPACE]}…"
        for text in map(str, (policy.observation_space, policy.action_space))
    )
    return f"with observations {seen} and actions {acts}"


def _act(plan: Plan, target: str | Path) -> str:
    policy_id = next(iter(plan.networks))
    which = "" if len(plan.networks) == 1 else f", policy_id={policy_id!r}"
    lines = [
        "import rllib_compat as compat",
        f"policy = compat.load_policy({str(target)!r}{which})",
        "action = policy.compute_single_action(observation).actions",
    ]
    if plan.reason.startswith("$.exploration_config "):
        old = plan.checkpoint.source.place
        lines.append("# to continue training with the exploration of its algorithm:")
        lines.append(f"# algorithm = compat.load({old!r}, exploration_config={{}})")
    why = f" ({plan.reason}, so nothing trains it)" if plan.reason else ""
    return "\n  ".join([f"to let it act{why}, in Python:", *lines])
