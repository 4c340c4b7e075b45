"""Writes a folder for sharing on model hubs: arrays, metadata, metrics and a model card.

Nothing is uploaded. All text of the checkpoint is quoted.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from rllib_compat.conversion.plan import Plan
from rllib_compat.conversion.write import exports
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.text import printable
from rllib_compat.trials import read_returns

#: The file name of the video that model hubs show with a card.
_VIDEO = "replay.mp4"

_CARD = """\
---
library_name: rllib-compat
tags: {tags}
{index}---

# {title}

{policies}

| | |
|---|---|
{facts}

```python
from rllib_compat import load_policy  # pip install rllib-compat

policy = load_policy("path/to/this/folder")
action = policy.compute_single_action(observation).actions
```

`config.json` has the config of the training, `*.safetensors` the networks with their graphs.
Nothing in these files is executed when they are loaded.
"""


def write(plan: Plan, target: Path) -> list[Finding]:
    """Writes `<policy>.safetensors`, `config.json`, `results.json`, `replay.mp4` and `README.md`.

    Returns:
        Findings about the parts that the files lack.
    """
    findings = exports.write_safetensors(plan, target)
    checkpoint = plan.checkpoint
    environment = checkpoint.config.get("env")
    facts = {
        "algorithm": checkpoint.algorithm or "unknown",
        "environment": str(environment) if environment else "unknown",
        "ray_version": checkpoint.source.ray_version or "unknown",
        "env_steps": checkpoint.counters.env_steps,
    }
    networks = {policy_id: exports.describe(plan, policy_id) for policy_id in checkpoint.policies}
    config = {**facts, "policies": networks, "config": exports.plain(checkpoint.config)}
    (target / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    results = _results(checkpoint.source.path, checkpoint.counters.iteration)
    if results:
        (target / "results.json").write_text(json.dumps(results, indent=2), "utf-8")
    if _copy_video(checkpoint.source.path, target / _VIDEO):
        facts["video"] = _VIDEO
    (target / "README.md").write_text(_card(facts, networks, results), "utf-8")
    return findings


def _copy_video(source: Path, target: Path) -> bool:
    """Copies the newest video of the trial; does not follow links."""
    folders = (source, *source.absolute().parents[:2])
    found = [video for folder in folders for video in folder.glob("*.mp4")]
    videos = [video for video in found if video.is_file() and not video.is_symlink()]
    if videos:
        shutil.copyfile(max(videos, key=lambda video: video.stat().st_mtime), target)
    return bool(videos)


def _results(source: Path, iteration: int | None) -> dict[str, float]:
    """Returns the trial's results of the checkpoint's iteration; may be empty."""
    own = [point for point in read_returns(source, axis="iterations") if point.x == iteration]
    return {"iteration": own[0].x, "mean_reward": own[0].mean} if own else {}


def _card(facts: dict[str, Any], networks: dict[str, Any], results: dict[str, float]) -> str:
    algorithm, environment = facts["algorithm"], facts["environment"]
    metric = {"type": "mean_reward", "name": "mean_reward", "value": results.get("mean_reward")}
    task = {"type": "reinforcement-learning", "name": "reinforcement-learning"}
    place = {"name": environment, "type": environment}
    entry = {"task": task, "dataset": place, "metrics": [metric]}
    index = json.dumps([{"name": algorithm, "results": [entry]}])
    return _CARD.format(
        tags=json.dumps(["reinforcement-learning", "rllib", algorithm, environment]),
        index=f"model-index: {index}\n" if results else "",
        title=f"{_quoted(algorithm)} on {_quoted(environment)}",
        policies="\n".join(
            f"- {_quoted(name)}: {_quoted(of['network'])}, {_quoted(of['observation_space'])} → "
            f"{_quoted(of['action_space'])}"
            for name, of in networks.items()
        ),
        facts="\n".join(
            f"| {name} | {_quoted(value)} |" for name, value in (facts | results).items()
        ),
    )


def _quoted(value: object) -> str:
    """Quotes a file's text, so that it is not read as Markdown."""
    shown = printable(str(value)).replace("`", "'").replace("|", "/")
    return f"`{shown if len(shown) < 200 else shown[:200] + '…'}`"
