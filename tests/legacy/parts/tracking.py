"""What `ray.tune.track` of Ray 0.8.5 keeps of scripts that are no trials; no Ray runs."""

import json
import tempfile
from pathlib import Path

from ray.tune import track
from ray.tune.track.session import TrackSession

#: What differs in each run.
ELSEWHERE = {"date", "hostname", "node_ip", "pid", "timestamp", "experiment_id", "trial_id"}


def outcome(call, *arguments, **by_name):
    """What a call gives, or the kind of its error."""
    try:
        found = call(*arguments, **by_name)
    except Exception as error:
        return type(error).__name__
    return found if isinstance(found, (bool, int, str, type(None))) else type(found).__name__


def of_sessions(found):
    with tempfile.TemporaryDirectory() as folder:
        told = [outcome(track.get_session), outcome(track.log, loss=1.0), outcome(track.trial_dir)]
        told.append(track.init(trial_name="named", experiment_dir=folder))
        told += [outcome(track.init), outcome(track.init, ignore_reinit_error=False)]
        name = Path(track.trial_dir()).name
        told += [track.trial_name(), name[:8], len(name), len(track.trial_id())]
        told += [Path(track.trial_dir()).parent == Path(folder), outcome(track.get_session)]
        track.log(loss=1.0)
        track.log(loss=0.5, more={"a": 1})
        track.log(training_iteration=7, loss=0.25)
        place = Path(track.trial_dir())
        told += [track.shutdown(), outcome(track.get_session), outcome(track.shutdown)]
        rows = [json.loads(line) for line in (place / "result.json").read_text().splitlines()]
        for row in rows:
            told.append(sorted((name, row[name]) for name in row if name not in ELSEWHERE))
            told.append(len(row["trial_id"]))
        config = json.loads((place / "params.json").read_text())
        told += [sorted(config), config["trial_completed"]]
        session = TrackSession(experiment_dir=folder, trial_config={"lr": 0.1})
        told += [session.trial_name == session.trial_id, session.trial_config["lr"]]
        told += [session.close(), outcome(TrackSession, upload_dir="s3://x", experiment_dir=folder)]
    found["track"] = [str(value) for value in told]


QUESTIONS = (of_sessions,)
