"""The table of what changed between Ray releases, against itself and the installed Ray."""

import json
from types import FunctionType

import pytest

from rllib_compat.ray_versions import configs, releases, renames, types
from tests.ray_releases import page, record, record_all

CHANGES = json.loads(record_all.API.read_text(encoding="utf-8"))


def test_the_package_reads_what_was_recorded():
    written = json.loads(record_all.SETTINGS.read_text(encoding="utf-8"))
    assert written == record_all.settings_since(CHANGES)


def test_what_was_renamed_has_the_old_name_as_long_as_its_row_says():
    rows = [*renames.METHODS.items(), *renames.PLACES.items()]
    names = {
        release: {*recorded["modules"], *(m.rpartition(".")[2] for m in recorded["members"])}
        for release, recorded in record_all.unfold(CHANGES).items()
    }
    held = [row for row in rows if row[0] in names[max(names, key=record_all.age)]]
    assert len(held) > 6
    for today, (before, until) in held:
        for release, known in names.items():
            if record_all.age(release) > record_all.age(until):
                assert today in known, (release, today)
            else:
                assert before in known, (release, before)
                assert today not in known, (release, today)


#: Ray's class → the protocol that stands for it.
PROTOCOLS = {
    "ray.rllib.algorithms.algorithm:Algorithm": types.Algorithm,
    "ray.rllib.connectors.connector_pipeline_v2:ConnectorPipelineV2": types.ConnectorPipeline,
    "ray.rllib.core.learner.learner:Learner": types.Learner,
    "ray.rllib.core.learner.learner_group:LearnerGroup": types.LearnerGroup,
    "ray.rllib.env.env_runner_group:EnvRunnerGroup": types.EnvRunnerGroup,
    "ray.rllib.env.multi_agent_episode:MultiAgentEpisode": types.MultiAgentEpisode,
    "ray.rllib.env.single_agent_env_runner:SingleAgentEnvRunner": types.EnvRunner,
    "ray.rllib.env.single_agent_episode:SingleAgentEpisode": types.SingleAgentEpisode,
    "ray.rllib.utils.metrics.metrics_logger:MetricsLogger": types.MetricsLogger,
}


@pytest.mark.parametrize("place", PROTOCOLS)
def test_protocols_name_what_every_release_has(place):
    protocol = PROTOCOLS[place]
    methods = {name for name, value in vars(protocol).items() if isinstance(value, FunctionType)}
    own = {name for name in methods if not name.startswith(("__", "_proto", "_no_init"))}
    places = place, "ray.rllib.env.env_runner:EnvRunner"  # the base of env runners
    for release, recorded in record_all.unfold(CHANGES).items():
        for name in filter(str.islower, {*own, *protocol.__annotations__}):  # no constants
            assert any(f"{p}.{name}" in recorded["members"] for p in places), (release, name)


def test_records_survive_being_kept_as_changes():
    records = record_all.unfold(CHANGES)
    assert record_all.fold(records) == CHANGES
    assert "std_array" in str(records["2.40"]["states"])
    assert "lifetime_sum" not in records["2.52"]["reductions"]
    assert "lifetime_sum" in records["2.53"]["reductions"]


def test_a_setting_that_came_and_one_that_went_are_told_apart():
    changes = {
        "settings": {
            "training.old": {"2.40": "*"},
            "training.new": {"2.50": "PPO", "2.52": "*"},
            "training.gone": {"2.40": "*", "2.44": None},
        }
    }
    assert record_all.settings_since(changes) == {
        "came": {"2.50": ["training.new"]},
        "went": {"2.44": ["training.gone"]},
    }


@pytest.mark.filterwarnings("ignore::UserWarning")  # Ray's examples register their environments
def test_the_installed_rays_configs_take_what_was_recorded():
    records = record_all.unfold(CHANGES)
    release = ".".join(map(str, releases.installed().release[:2]))
    known = max(
        (r for r in records if record_all.age(r) <= record_all.age(release)), key=record_all.age
    )
    taken = record.settings()
    assert not {name for name in records[known]["settings"] if name not in taken}
    assert all(configs.has_setting(name) for name in taken)


def test_a_runs_numbers_stand_below_their_names():
    run = {"failed": 1, "minutes": 4.5, "passed": 20, "skipped": 3}
    assert "| 2.44 | fast | 20 | 1 | 3 | 4.5 |" in page.page({"2.44 fast": run}, {}, {})


def test_a_tree_that_does_not_load_is_not_a_tick():
    outcomes = {
        "2.40": ["goes on"],
        "2.44": ["KeyError: 'x'", "goes on"],
        "2.46": ["KeyError: 'x'"],
    }
    table = page.matrix({"2.40": outcomes})
    assert "| 2.40 | ✓ | (1) c | (1) |" in table
    assert "(1) `KeyError: 'x'`" in table
