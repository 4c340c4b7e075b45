"""The breaks that the tests have to notice, a row each.

To add one: name what would be broken for a user, the line, the line with the mistake in it, and
the tests that should see it. `tests/unit/test_mutants.py` tells when a row no longer fits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A break.

    Attributes:
        breaks: What it breaks for a user.
        file: Where.
        old: Text that stands there exactly once.
        new: What stands there instead.
        tests: The tests that have to notice, as pytest takes them.
    """

    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the break in it.

        Raises:
            ValueError: The old text stands there never, or more than once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


def _in(file: str, tests: tuple[str, ...], *rows: tuple[str, str, str]) -> list[Mutant]:
    return [Mutant(breaks, file, old, new, tests) for breaks, old, new in rows]


# The tests of a part of the code, quick ones first: the first that fails ends a run.
PICKLES = tuple(
    f"tests/unit/pickles/test_{name}.py"
    for name in ("calls", "stack", "exhaustion", "records", "arrays", "hostile")
)
NAMES = (
    "tests/unit/test_networks.py",
    *(f"tests/unit/networks/test_{name}.py" for name in ("algorithms", "vision", "recurrent")),
)
CONFIG = ("tests/unit/config",)
VALIDATION = (
    *(
        f"tests/security/test_config_text.py::{name}"
        for name in (
            "TestTrust",
            "test_configs_inside_of_configs_end",
            "test_keys_that_are_no_text_stay_behind",
        )
    ),
    *CONFIG,
)
ENGINE = (*CONFIG, "tests/properties/test_config.py")
PROOF = tuple(
    f"tests/unit/test_convert.py::test_{name}"
    for name in (
        "an_output_that_the_new_module_lacks_is_an_error",
        "a_wrong_number_is_never_within_the_tolerance",
        "a_policy_that_the_new_checkpoint_lacks_is_an_error",
        "a_number_may_be_off_by_ten_times_the_networks_own_error_and_no_more",
        "where_float32_overflows_the_new_network_may_and_nothing_else",
        "another_shape_is_an_error_and_not_broadcast",
        "random_inputs_stay_within_bounds_and_are_the_same_each_time",
        "a_network_that_gives_nan_is_the_same_network",
        "a_failed_proof_leaves_nothing_behind",
    )
)

ROUNDING = ("tests/unit/test_proof.py", *PROOF)
RECORDED = (
    *(
        f"tests/unit/test_proof.py::test_{name}"
        for name in (
            "a_recording_with_pickles_in_it_is_not_loaded",
            "a_recording_of_something_else_is_an_error_and_writes_nothing",
            "a_recording_that_is_no_npz_is_a_clear_error",
            "a_wrong_activation_is_refused_where_a_recording_is_given",
            "what_a_museum_ray_recorded_proves_that_its_file_was_read_rightly",
        )
    ),
    "tests/security/test_other_doors.py",
)

MUTANTS: tuple[Mutant, ...] = (
    *_in(
        "rllib_compat/formats/pickles/machine.py",
        PICKLES,
        (
            "nested pickles cost nothing",
            '        self.budget.spend("nested", 1)\n',
            '        self.budget.spend("nested", 0)\n',
        ),
        (
            "pickles nest without end",
            "        if self.level >= _DEEPEST_NESTING:",
            "        if self.level < 0:",
        ),
        (
            "the bytes of nested pickles cost nothing",
            '        self.budget.spend("bytes", inner.pos)\n',
            "",
        ),
        ("names in nested pickles are not told", "        self.globals += inner.globals\n", ""),
        (
            "unknown names in nested pickles are not told",
            "        self.unknown += inner.unknown\n",
            "",
        ),
        (
            "`_reconstructor` with a base state loses the state",
            " and len(args) == 3 and args[2] is None:",
            " and len(args) == 3:",
        ),
        (
            "a constructor is called although keyword arguments are left over",
            "            if known is not None and not kwargs:",
            "            if known is not None:",
        ),
        (
            "a name of a million characters is kept",
            "        if len(module) + len(name) > _LONGEST_NAME:",
            "        if len(module) + len(name) > 10**9:",
        ),
        (
            "an unknown name is not counted",
            "            self.unknown[ref.qualified] += 1\n        return ref",
            "            pass\n        return ref",
        ),
        (
            "any object may be called",
            '        elif type(callee) is not StandIn:\n            raise ValueError(f"a call of a {type(callee).__name__}")',
            "        elif type(callee) is not StandIn:\n            return callee(*args)",
        ),
        (
            "keys are not checked before they are hashed",
            "                if type(key) is not str:\n                    check_key",
            "                if type(key) is str:\n                    check_key",
        ),
        (
            "the memo grows without limit",
            "        if len(memo) > self.budget.memo:",
            "        if len(memo) < 0:",
        ),
        (
            "what was remembered before its state came stays unfinished",
            "        if type(value) is Unbuilt and value.value is not None:",
            "        if False:",
        ),
        (
            "a key without a value is dropped",
            '        if len(flat) % 2:\n            raise ValueError("a key without a value")\n',
            "",
        ),
    ),
    *_in(
        "rllib_compat/formats/pickles/opcodes.py",
        PICKLES,
        (
            "a pickle that leaves values behind is taken for sound",
            "            if len(self.stack) != 1 or self.marks:",
            "            if not self.stack:",
        ),
        (
            "an unfinished object is handed on",
            "            check_finished(value, self.budget)\n",
            "",
        ),
        (
            "a pickle of a later protocol is read as if it were known",
            "    if protocol > _HIGHEST_PROTOCOL:",
            "    if protocol > 255:",
        ),
        (
            "a frame may reach beyond the end",
            "    if size > len(machine.data) - machine.pos:",
            "    if size > 1 << 62:",
        ),
        (
            "POP leaves a mark behind",
            "    if machine.stack:\n        machine.stack.pop()\n    else:\n        machine.pop_mark()",
            "    machine.stack.pop()",
        ),
        (
            "sets take anything",
            '    if type(target) is not set:\n        raise ValueError(f"elements for a {type(target).__name__}")\n',
            "",
        ),
    ),
    *_in(
        "rllib_compat/formats/pickles/machine.py",
        PICKLES,
        (
            "keys that collide cost nothing",
            '    budget.spend("collisions", others + 1)',
            '    budget.spend("collisions", 0)',
        ),
        (
            "a value is nested without limit",
            "            if height > budget.depth:",
            "            if height < 0:",
        ),
        (
            "an object without its state is handed on",
            "                if type(part) is Unbuilt:",
            "                if part is Unbuilt:",
        ),
    ),
    *_in(
        "rllib_compat/formats/pickles/python_types.py",
        PICKLES,
        (
            "copies of one large collection cost nothing",
            '    machine.budget.spend("elements", len(items))\n    return items',
            "    return items",
        ),
        (
            "a range of any length is made",
            '    machine.budget.spend("elements", len(made))\n    return made',
            "    return made",
        ),
        (
            "the second of a repeated hour is taken for the first",
            "        fold=month >> 7,",
            "        fold=0,",
        ),
        (
            "microseconds are scrambled",
            "    return high << 16 | mid << 8 | low",
            "    return high << 16 | mid << 8",
        ),
    ),
    *_in(
        "rllib_compat/neutral/budget.py",
        PICKLES,
        (
            "a budget may be overdrawn by what is asked for at once",
            "        if left < 0:",
            "        if getattr(self, what) < 0:",
        ),
        ("what was spent is forgotten", "        setattr(self, what, left)\n", ""),
    ),
    *_in(
        "rllib_compat/networks/mapping.py",
        NAMES,
        (
            "dense layers of torch are not transposed",
            "TRANSPOSED = Change(lambda x: x.T, lambda x: x.T)",
            "TRANSPOSED = Change(lambda x: x, lambda x: x)",
        ),
        (
            "convolutions of torch come out with height and width swapped",
            "lambda x: x.transpose(2, 3, 1, 0) if",
            "lambda x: x.transpose(3, 2, 1, 0) if",
        ),
        (
            "a convolution for torch is written in the wrong order",
            "lambda x: x.transpose(3, 2, 0, 1) if",
            "lambda x: x.transpose(2, 3, 0, 1) if",
        ),
        (
            "layers are numbered from 0 where they begin at 1",
            "        return pattern, int(match[1] or 1), int(match[2] or 0)",
            "        return pattern, int(match[1] or 1), 0",
        ),
        (
            "every layer is taken where only every second is one",
            "        return index if rest == 0 and index >= 0 else None",
            "        return index if index >= 0 else None",
        ),
        (
            "missing arrays are not noticed",
            "    missing, spare = sorted(wanted - found), sorted(found - wanted)",
            "    missing, spare = [], sorted(found - wanted)",
        ),
        (
            "arrays too many are not noticed",
            "    missing, spare = sorted(wanted - found), sorted(found - wanted)",
            "    missing, spare = sorted(wanted - found), []",
        ),
        (
            "an array without a place in the target is dropped",
            "            raise CheckpointError(\n"
            '                f"The target has no place for the array {name!r}.", fix=refusals.CHECK\n'
            "            )",
            "            continue",
        ),
    ),
    *_in(
        "rllib_compat/conversion/compare.py",
        ROUNDING,
        (
            "any difference is within the yardstick",
            "TIMES = 10",
            "TIMES = 10**9",
        ),
    ),
    *_in(
        "rllib_compat/conversion/compare.py",
        ROUNDING,
        (
            "float32's error is measured once, and luck makes it zero",
            "_TRIES = 4",
            "_TRIES = 0",
        ),
        (
            "a small row may be off as far as a large one",
            "        return {name: _error_of_rows(off, np.asarray(exact[name])) for name, off in worst.items()}",
            "        return {name: np.full(np.shape(exact[name]), off.max()) for name, off in worst.items()}",
        ),
        (
            "a row that happened to be exact may not be off at all",
            "    errors = np.maximum(np.maximum(rows, usual), unit)",
            "    errors = rows",
        ),
        (
            "numbers that overflow in float32 have no error",
            "    return np.asarray(np.where(finite, errors, np.inf))",
            "    return np.asarray(errors)",
        ),
        (
            "inputs are not moved, so badly conditioned networks are refused",
            "    return np.asarray(np.nextafter(rounded, towards))",
            "    return rounded",
        ),
    ),
    *_in(
        "rllib_compat/conversion/recordings.py",
        RECORDED,
        (
            "pickles in a recording are loaded",
            "np.load(io.BytesIO(data), allow_pickle=False)",
            "np.load(io.BytesIO(data), allow_pickle=True)",
        ),
        (
            "a small recording may stand for gigabytes",
            '            budget.spend("unpacked" if packed else "unfolded", info.file_size, info.filename)',
            "            pass",
        ),
        (
            "what was recorded of the network is not found",
            "    return Recording(inputs, outputs) if outputs else None",
            "    return None",
        ),
        (
            "outputs of critics are compared without the actions that they took",
            "    return any(name in taken and _first(arrays, INPUTS[name]) is None for name in OF_CRITICS)",
            "    return False",
        ),
        (
            "a network with a filter gets observations that were filtered already",
            "            found = _first(arrays, UNFILTERED)",
            '            found = _first(arrays, INPUTS["obs"])',
        ),
        (
            "a recording of another network is no error",
            "    except ValueError as error:\n        raise CheckpointError(",
            "    except ValueError as error:\n        return None\n        raise CheckpointError(",
        ),
    ),
    *_in(
        "rllib_compat/conversion/compare.py",
        PROOF,
        (
            "large outputs may be off a hundred times further",
            "        ok=bool(np.all(alike | (difference <= TIMES * error))),",
            "        ok=bool(np.all(alike | (difference <= 100 * TIMES * error))),",
        ),
        (
            "any two outputs are equal",
            "        ok=bool(np.all(alike | (difference <= TIMES * error))),",
            "        ok=True,",
        ),
        (
            "one right number makes all of them right",
            "        ok=bool(np.all(alike | (difference <= TIMES * error))),",
            "        ok=bool(np.any(alike | (difference <= TIMES * error))),",
        ),
        (
            "NaN is within the tolerance",
            "        ok=bool(np.all(alike | (difference <= TIMES * error))),",
            "        ok=not np.any(difference > TIMES * error),",
        ),
        (
            "outputs of another shape are broadcast",
            "        if np.shape(a) != np.shape(b) or not np.ndim(a):",
            "        if False:",
        ),
        (
            "an output that the new module lacks is not missed",
            '        if name not in new:\n            raise VerificationError(\n                f"The new module has no output {name}.", where=f"policies.{policy_id}"\n            )',
            "        if name not in new:\n            continue",
        ),
        (
            "a difference is found and nothing happens",
            "    if not bad:\n        return",
            "    if rows:\n        return",
        ),
        (
            "a policy that the new checkpoint lacks is not missed",
            "        if policy_id not in new:\n            raise",
            "        if policy_id not in new:\n            continue\n            raise",
        ),
        (
            "random inputs leave their bounds",
            "    return np.where(bounded, uniform, normal)",
            "    return normal",
        ),
    ),
    *_in(
        "rllib_compat/formats/atomic.py",
        ("tests/unit/test_atomic.py",),
        (
            "files are not on the disk when they get their name",
            "        os.fsync(descriptor)\n",
            "        pass\n",
        ),
        (
            "only folders are brought to the disk",
            "[folder / name for folder, files in tree for name in files]",
            "[]",
        ),
        (
            "a failure leaves half a checkpoint behind",
            "                shutil.rmtree(temporary, ignore_errors=True)\n",
            "                pass\n",
        ),
        (
            "a failure leaves empty folders behind",
            "                    parent.rmdir()\n",
            "                    pass\n",
        ),
        (
            "a target that is there is replaced without being asked",
            "        if _is_there(target) and not overwrite:\n            raise target_exists(target)\n",
            "",
        ),
        (
            "a target that appears meanwhile is replaced",
            "    if not overwrite:  # it has appeared while we were writing\n        raise target_exists(target)\n",
            "",
        ),
        (
            "the source is overwritten",
            "            _refuse_overlap(target, Path(source).resolve())\n",
            "            pass\n",
        ),
        (
            "a target around the source is taken",
            "    if resolved.is_relative_to(source) or source.is_relative_to(resolved):",
            "    if resolved.is_relative_to(source):",
        ),
        (
            "what killed runs have left stays for good",
            "        _finish_killed_runs(target)\n        if _is_there",
            "        if _is_there",
        ),
        (
            "an old target that stepped aside is removed instead of brought back",
            "        else:\n            old.rename(target)\n",
            "        else:\n            _remove(old)\n",
        ),
        (
            "the folder of a run that is still writing is removed",
            "        if descriptor is not None:\n            _remove(partial)\n            os.close(descriptor)",
            "        _remove(partial)",
        ),
        (
            "when the new one can't be put in place, the old one is gone",
            "        backup.rename(target)\n        raise",
            "        raise",
        ),
    ),
    *_in(
        "rllib_compat/config/engine.py",
        ENGINE,
        (
            "an algorithm's own key no longer wins over a common one",
            "        algorithm in table.homes(leaf.key),\n",
            "        False,\n",
        ),
        (
            "a default wins over what somebody chose",
            "        chosen(leaf),\n        entry.settings",
            "        False,\n        entry.settings",
        ),
        (
            "an older key wins over a newer one",
            "        table.since(leaf.key, algorithm),\n",
            "        -table.since(leaf.key, algorithm),\n",
        ),
        (
            "a key that lost still sets its value",
            "    rest = {k: v for k, v in loser.settings.items() if k not in winners}",
            "    rest = dict(loser.settings)",
        ),
        (
            "what somebody chose and lost is told as if it did not matter",
            '        severity=Severity.WARNING if chosen(loser.leaf) else Severity.INFO,\n        message=f"{winner',
            '        severity=Severity.INFO,\n        message=f"{winner',
        ),
        (
            "keys of the old API stack pass in silence on the new one",
            '    if context.stack == "new" and needs_old:',
            "    if False:",
        ),
        (
            "an unknown key is no error",
            '        rule, error = "engine.unknown_key", Severity.ERROR',
            '        rule, error = "engine.unknown_key", Severity.INFO',
        ),
        (
            "a grid search of different settings is cut without a word",
            '                severity=Severity.WARNING,\n                hint="run the legacy',
            '                severity=Severity.INFO,\n                hint="run the legacy',
        ),
        (
            "of a grid search the first alternative counts for all",
            '        grid = {n: {"grid_search": [o.settings[n] for o in outcomes]} for n in outcomes[0].settings}',
            "        grid = dict(outcomes[0].settings)",
        ),
        (
            "keys inside sections are not looked at",
            '            yield from leaves(value, algorithms, f"{name}.", where)',
            "            continue",
        ),
        (
            "another algorithm's key that was set is told as if it did not matter",
            "    severity = Severity.INFO if idle else Severity.WARNING\n    return Finding(",
            "    severity = Severity.INFO\n    return Finding(",
        ),
    ),
    *_in(
        "rllib_compat/config/validation.py",
        VALIDATION,
        (
            "keys that are no text come in from a file",
            "                if self.validator.origin is Origin.USER:\n                    kept[key] = value  # the engine",
            "                if True:\n                    kept[key] = value  # the engine",
        ),
        (
            "configs nest without end",
            "        if self._is_too_deep(path):\n            return {}",
            "        if self.depth < 0:\n            return {}",
        ),
        (
            "a trusted name may be any text",
            "        if not colon or not all(part.isidentifier() for part in parts):",
            "        if not colon:",
        ),
    ),
    *_in(
        "rllib_compat/config/steps/sampling.py",
        ENGINE,
        (
            "an LSTM is not told how long its sequences are",
            "    if given.get(LSTM) is not True or SEQUENCE_LENGTH in given:",
            "    if given.get(LSTM) is True or SEQUENCE_LENGTH in given:",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/single_agent_runner.py",
        ("tests/unit/runtime/test_single_agent_runner.py",),
        (
            "connectors of a user's own are passed over",
            "        and sampling.classes_of(runner._module_to_env.connectors) == rays_to_env()\n",
            "",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/single_agent_runner.py",
        ("tests/unit/runtime/test_single_agent_runner.py",),
        (
            "callbacks no longer hear of steps",
            "            elif calls_back:",
            "            elif not calls_back:",
        ),
        (
            "an episode's chunks are lost to its return",
            "            self._runner._ongoing_episodes_for_metrics[chunk.id_].append(chunk)\n",
            "            pass\n",
        ),
        (
            "an episode begins with the state that the one before ended with",
            "[self._state if i in begun else state for",
            "[state for",
        ),
        (
            "filters see an observation without counting it in the episode",
            "            observations = np.stack([e.get_observations(-1) for e in self._episodes])",
            "            observations = np.asarray(observations)",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/multi_agent_runner.py",
        ("tests/unit/runtime/test_multi_agent_runner.py",),
        (
            "agents forget what they have seen before",
            "        if begins or states is None:",
            "        if True:",
        ),
        (
            "agents of other environments get each other's actions",
            "                    index = where[episode_id]",
            "                    index = len(where) - 1 - where[episode_id]",
        ),
        (
            "what stands before Ray's own connectors is passed over",
            '        batch = _call_connectors(self._before, {**given, "batch": given.get("batch") or {}})',
            '        batch = given.get("batch") or {}',
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/layers.py",
        ("tests/unit/algorithms/test_initial_weights.py",),
        (
            "the step before goes through the dense layers",
            "        if not beside:\n",
            "        if beside:\n",
        ),
    ),
    *_in(
        "rllib_compat/runtime/connectors.py",
        ("tests/unit/runtime/test_previous_steps.py",),
        (
            "an old network sees the step before twice, or though it never did",
            "    inner = _without_previous_steps(had)",
            "    inner = had",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/sampling.py",
        ("tests/unit/runtime/test_single_agent_runner.py",),
        (
            "a forbidden action is taken",
            "    actions = (sums <= np.random.random(total.shape) * total).sum(-1)",
            "    actions = (sums < np.random.random(total.shape) * total * 1.2).sum(-1)",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/rounds.py",
        ("tests/integration/test_rounds.py",),
        (
            "iterations are longer than asked for",
            "                self.steps - steps < (",
            "                self._told - steps < (",
        ),
        (
            "learning begins an iteration later",
            "        return self.steps < int(",
            "        return self._told < int(",
        ),
        (
            "schedules and targets stand still within an iteration",
            "            now=self.steps if now is None else now,",
            "            now=self._told if now is None else now,",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/training_steps.py",
        ("tests/integration/test_rounds.py",),
        (
            "priorities are those of earlier updates",
            "            learner.metrics.delete(key)\n",
            "",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/learners.py",
        ("tests/integration/test_rounds.py",),
        (
            "targets follow too often",
            "        dates[module_id] = now\n",
            "",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/tensors.py",
        ("tests/unit/runtime/test_following_tensors.py",),
        (
            "an env runner whose module was made anew acts with its first weights",
            "    if known is None or [*map(id, known[0])] != [*map(id, modules)]:",
            "    if known is None:",
        ),
        (
            "targets go the other part of the way",
            "            torch._foreach_lerp_(self.tensors, self.followed, tau)",
            "            torch._foreach_lerp_(self.tensors, self.followed, 1.0 - tau)",
        ),
        (
            "a module's own kind of state is lost",
            "        if all(map(_is_plain, [runner.module, learned, *modules])):",
            "        if names:",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/a2c.py",
        ("tests/unit/algorithms/test_losses.py",),
        (
            "A2C is rewarded for being certain",
            "        loss = policy_loss + weight * vf_loss - entropy_coeff * entropy",
            "        loss = policy_loss + weight * vf_loss + entropy_coeff * entropy",
        ),
        (
            "padding is learned from",
            "            distribution.entropy()[valid],",
            "            distribution.entropy(),",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/ddpg.py",
        ("tests/unit/algorithms/test_ddpg_losses.py",),
        (
            "TD3 trusts the more hopeful of its critics",
            "            least(next_values.values()),",
            "            torch.stack(list(next_values.values())).max(dim=0).values,",
        ),
        (
            "TD3's actor learns at each update",
            "        return delay == 1 or self.updates_of_critics(module_id) % delay == 0",
            "        return True",
        ),
        (
            "DDPG hopes for rewards after an episode's end",
            "            batch[Columns.TERMINATEDS],",
            "            torch.zeros_like(batch[Columns.TERMINATEDS]),",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/qmix.py",
        ("tests/unit/algorithms/test_qmix.py",),
        (
            "QMIX's targets judge the actions that they prefer themselves",
            "    return targets.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1)",
            "    return targets.max(-1).values",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/crr.py",
        ("tests/unit/algorithms/test_crr.py",),
        (
            "CRR's critics are trained by its actor's weights",
            "        advantages = least(values).detach() - own",
            "        advantages = least(values) - own",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/transitions.py",
        ("tests/unit/algorithms/test_replay.py",),
        (
            "rewards of later steps count in full",
            "        total[goes_on] += gamma**steps * rewards[goes_on + steps]",
            "        total[goes_on] += rewards[goes_on + steps]",
        ),
        (
            "what waits in one chunk is lost to the next",
            "            self._waiting[episode.id_] = steps.last(waiting), self._come",
            "            pass",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/replay.py",
        ("tests/unit/algorithms/test_replay.py",),
        (
            "new steps are hardly ever replayed",
            "        self._greatest = max(self._greatest, float(priorities.max()))",
            "        self._greatest = float(priorities.min())",
        ),
        (
            "weights make likely steps count more",
            "        return (self._sums.at(places) / self._least.all) ** -beta",
            "        return (self._sums.at(places) / self._least.all) ** beta",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/replay.py",
        ("tests/unit/algorithms/test_replay.py",),
        (
            "errors of replaced steps go to those in their place",
            "        return (places - added) % self.capacity >= self.added - added",
            "        return places >= 0",
        ),
    ),
    *_in(
        "rllib_compat/networks/families/bandit.py",
        ("tests/unit/networks/test_removed.py",),
        (
            "a damaged posterior is converted",
            "    if (_size(precision @ mean - seen) > allowed).any():",
            "    if False:",
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/layers.py",
        ("tests/unit/algorithms/test_initial_weights.py",),
        (
            "new networks die of images of bytes",
            "{**inputs, Columns.OBS: inputs[Columns.OBS].float()}",
            "inputs",
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/layers.py",
        ("tests/unit/networks/test_new_recurrent_modules.py",),
        (
            "the states of a new LSTM are mixed up",
            '        after = {"h": h.transpose(0, 1), "c": c.transpose(0, 1)}',
            '        after = {"h": c.transpose(0, 1), "c": h.transpose(0, 1)}',
        ),
    ),
    *_in(
        "rllib_compat/networks/families/rl_module.py",
        ("tests/unit/networks/test_new_recurrent_modules.py",),
        (
            "a wrong activation of R2D2 is proven",
            'options.get("fcnet_activation", "tanh")',
            'options.get("fcnet_activation")',
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/graph_module.py",
        ("tests/unit/networks/test_next_update.py",),
        (
            "what stands behind an observation goes into other inputs",
            "    shapes = [graph.inputs[name] for name in names]",
            "    shapes = [graph.inputs[name] for name in reversed(names)]",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/learners.py",
        ("tests/integration/test_restored_removed.py",),
        (
            "a restored SAC begins with the temperature of its config",
            "                held[module_id].data.fill_(value)",
            "                held[module_id].data.fill_(0.0)",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/sequence_replay.py",
        ("tests/unit/algorithms/test_r2d2.py",),
        (
            "R2D2's burn-in is cut off its sequences",
            "            begin, end = max(0, start - self.burn_in), min(start + self.length, steps)",
            "            begin, end = start, min(start + self.length, steps)",
        ),
    ),
    *_in(
        "rllib_compat/config/steps/learning.py",
        ENGINE,
        (
            "a replay buffer of its own has no capacity",
            "    return Change({CAPACITY: capacity}, f",
            "    return Change({}, f",
        ),
        (
            "several policies share a buffer for one",
            '    return Change({TYPE: f"MultiAgent{kind}" if several',
            '    return Change({TYPE: f"MultiAgent{kind}" if not several',
        ),
        (
            "a plain buffer gets priorities",
            "    if not isinstance(given.get(TYPE), str) or _is_prioritized(given) or not there:",
            "    if True:",
        ),
        (
            "prioritized buffers begin with other exponents",
            "        sets={ALPHA: 0.6, BETA: 0.4},\n        unless_given=True",
            "        sets={ALPHA: 0.4, BETA: 0.6},\n        unless_given=True",
        ),
    ),
    *_in(
        "rllib_compat/config/steps/sampling.py",
        ENGINE,
        (
            "Atari games are played without the DeepMind wrappers",
            "    if not is_game:",
            "    if True:",
        ),
        (
            "rewards of Atari games are not clipped",
            '        given.get(CLIPPING) is None and wrapped == "deepmind" and clips_rewards(',
            "        False and clips_rewards(",
        ),
    ),
    *_in(
        "rllib_compat/config/steps/offline.py",
        ENGINE,
        (
            "an offline algorithm waits for samples for ever",
            "        {SAMPLED: 0, TRAINED: given.get(TRAINED)",
            "        {SAMPLED: sampled, TRAINED: given.get(TRAINED)",
        ),
    ),
    *_in(
        "rllib_compat/execution/metric_ops.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "iterations of a plan are counted in sampled steps, whatever was asked for",
            "OncePerTimestepsElapsed(steps, by_steps_trained)",
            "OncePerTimestepsElapsed(steps)",
        ),
        (
            "custom metrics of a plan are told again in each result",
            'plan.info.pop("custom_metrics", {})',
            'plan.info.get("custom_metrics", {})',
        ),
    ),
    *_in(
        "rllib_compat/execution/concurrency_ops.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "items of flows that are not among the outputs go on",
            "    return item is not _HIDDEN",
            "    return True",
        ),
        (
            "a queue that nobody fills ends a plan in silence",
            "    raise CompatError(",
            "    return CompatError(",
        ),
    ),
    *_in(
        "rllib_compat/execution/train_ops.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "target networks are updated a step too late",
            "        if now < counters[LAST_TARGET_UPDATE_TS] + self.target_update_freq:",
            "        if now <= counters[LAST_TARGET_UPDATE_TS] + self.target_update_freq:",
        ),
        (
            "weights of policies that do not train are sent",
            "self.policies or local.get_policies_to_train()",
            "self.policies or local.policy_map",
        ),
    ),
    *_in(
        "rllib_compat/execution/rollout_ops.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "steps are lost between two large batches",
            "        if size := _SIZES[self.count_steps_by](batch):",
            "        if (size := _SIZES[self.count_steps_by](batch)) > 1:",
        ),
    ),
    *_in(
        "rllib_compat/execution/replay_ops.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "a part of a batch is never replayed",
            "        count = int(always) + (random.random() < chance)",
            "        count = int(always)",
        ),
    ),
    *_in(
        "rllib_compat/legacy/example_envs.py",
        ("tests/unit/runtime/test_execution_operators.py",),
        (
            "one agent's end is the end of all",
            "len(self.dones) == len(self.envs)",
            "bool(self.dones)",
        ),
    ),
    *_in(
        "rllib_compat/runtime/learner_info.py",
        ("tests/unit/runtime/test_results.py", "tests/unit/runtime/test_callbacks.py"),
        (
            "SAC's losses have PPO's names",
            '    names = LEARNER_STATS | (ACTOR_CRITIC_STATS if "alpha_value" in stats else {})',
            "    names = LEARNER_STATS",
        ),
    ),
    *_in(
        "rllib_compat/runtime/results.py",
        (
            "tests/unit/runtime/test_results.py",
            "tests/unit/runtime/test_callbacks.py",
            "tests/unit/runtime/test_clipped_rewards.py",
        ),
        (
            "episodes are kept for ever",
            "        self._history = _newest(episodes, window)",
            "        self._history = episodes",
        ),
        (
            "the smoothing window is not filled up with older episodes",
            "        episodes = _newest(self._history + new, max(window, len(new)))",
            "        episodes = new",
        ),
        (
            "one NaN makes a custom metric NaN",
            "    custom_lists = {name: [v for v in custom[name] if not np.any(np.isnan(v))] for name in custom}",
            "    custom_lists = custom",
        ),
        (
            "times are told in seconds instead of milliseconds",
            "    return float(seconds) * 1000.0",
            "    return float(seconds)",
        ),
        (
            "the rewards of policies are mixed up",
            "        (policy, reward)",
            '        ("p0", reward)',
        ),
        (
            "custom metrics are reduced that are to be kept",
            "    if not keep_metrics:",
            "    if True:",
        ),
        (
            "the records of episodes stay in the result",
            'result.get("env_runners", {}).pop(RECORDS, ())',
            'result.get("env_runners", {}).get(RECORDS, ())',
        ),
        (
            "throughput is a thousand times too small",
            '                result["timers"][throughput] = float(count) / time * 1000.0',
            '                result["timers"][throughput] = float(count) / time',
        ),
        (
            "an evaluation's own results are overwritten",
            '    if episodes or "episode_reward_mean" not in result:',
            "    if True:",
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/exploration.py",
        (
            "tests/unit/algorithms/test_q_exploration.py",
            "tests/unit/algorithms/test_dqn_losses.py",
        ),
        (
            "noise of noisy layers is not rooted",
            "(torch.sign(numbers) * torch.sqrt(torch.abs(numbers)) for numbers in drawn)",
            "drawn",
        ),
        (
            "the bias of noisy layers has no noise",
            "torch.outer(into, out), bias + sigma_bias * out",
            "torch.outer(into, out), bias",
        ),
        (
            "noisy layers draw noise without exploration, too",
            "            layer.noise = False",
            "            layer.noise = True",
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/exploration.py",
        (
            "tests/unit/algorithms/test_q_exploration.py",
            "tests/unit/algorithms/test_ddpg_losses.py",
        ),
        (
            "noise on weights stays on them",
            "                weight.data = data",
            "                pass",
        ),
        (
            "noise on weights always grows",
            "if moved <= wanted else",
            "if moved <= wanted + 1e9 else",
        ),
        (
            "how far noise moves actions is measured the other way round",
            "    terms = (before * torch.log(before / (after + _SMALL))).sum(-1)",
            "    terms = (after * torch.log(after / (before + _SMALL))).sum(-1)",
        ),
    ),
    *_in(
        "rllib_compat/networks/modules/q.py",
        (
            "tests/unit/algorithms/test_q_exploration.py",
            "tests/unit/algorithms/test_dqn_losses.py",
        ),
        (
            "both steps of a transition have the same noise",
            "                found[NEXT] = modules.q_values(module, {Columns.OBS: then})",
            "                found[NEXT] = found[QF_PREDS]",
        ),
        (
            "soft Q takes the best action",
            '        temperature = self.model_config.get("soft_q_temperature")',
            "        temperature = None",
        ),
    ),
    *_in(
        "rllib_compat/runtime/exploration.py",
        (
            "tests/unit/algorithms/test_q_exploration.py",
            "tests/unit/runtime/test_single_agent_runner.py",
        ),
        (
            "noise on weights is the same in all episodes",
            "        elif not episode.t or module.weight_noise is None:",
            "        elif module.weight_noise is None:",
        ),
        (
            "noise on weights changes in the middle of an episode",
            "        elif not episode.t or module.weight_noise is None:",
            "        else:",
        ),
    ),
    *_in(
        "rllib_compat/conversion/write/training_state.py",
        ("tests/unit/networks/test_next_update.py",),
        (
            "noise on weights begins as large as at first",
            '        if isinstance(policy.exploration, Mapping) and "cur_stddev" in policy.exploration',
            "        if False",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/replay.py",
        ("tests/unit/algorithms/test_policy_replay.py",),
        (
            "policies that do not learn are kept",
            "            if learns(policy_id, to_train):\n                self.of",
            "            if True:\n                self.of",
        ),
        (
            "policies that do not learn are drawn",
            "            if len(kept) and learns(policy_id, to_train)",
            "            if len(kept)",
        ),
        (
            "all policies have one buffer",
            "                yield part.module_id or DEFAULT_MODULE_ID, part",
            "                yield DEFAULT_MODULE_ID, part",
        ),
        (
            "a policy's own settings don't reach its buffer",
            "TransitionReplayBuffer(**self._of_policies.get(policy, self._default))",
            "TransitionReplayBuffer(**self._default)",
        ),
    ),
    *_in(
        "rllib_compat/config/rules/exploration.py",
        ("tests/unit/config/test_meaning.py",),
        (
            "a policy of many explores as all others",
            '    return dict.fromkeys(targets) if ".policies." in context.path else {}',
            "    return {}",
        ),
        (
            "a policy without a way to explore of its own loses that of all",
            '    return dict.fromkeys(targets) if ".policies." in context.path else {}',
            "    return dict.fromkeys(targets)",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/ppo.py",
        ("tests/unit/algorithms/test_ppo.py",),
        (
            "PPO learns from the step that Ray adds to each chunk",
            "    (real,) = lengths.nonzero(as_tuple=True)",
            "    (real,) = (lengths >= 0).nonzero(as_tuple=True)",
        ),
        (
            "PPO makes a minibatch more of what is left",
            "-(-total // size) if legacy.keeps_partial_minibatch else total // size",
            "-(-total // size)",
        ),
        (
            "PPO tells of its last minibatch alone",
            "    return dict(zip(TERMS, torch.stack(terms).nanmean(dim=0).tolist(), strict=True))",
            "    return dict(zip(TERMS, terms[-1].tolist(), strict=True))",
        ),
        (
            "advantages are standardized by another deviation",
            "    deviation, center = torch.std_mean(gains[mask], correction=0)",
            "    deviation, center = torch.std_mean(gains[mask])",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/objectives.py",
        ("tests/unit/algorithms/test_actor_critics.py",),
        (
            "IMPALA's loss is a mean",
            "    return -(logp * gains).sum(), ",
            "    return -(logp * gains).mean(), ",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/vtrace.py",
        ("tests/unit/algorithms/test_actor_critics.py",),
        (
            "the last step of a fragment is learned from",
            "            learned = steps[:-1] if is_whole and self.legacy.vtrace_drops_last_step else steps",
            "            learned = steps",
        ),
        (
            "something is expected after the end of an episode",
            "            discounts = config.gamma * (1.0 - ended[learned])",
            "            discounts = config.gamma + 0.0 * ended[learned]",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/cql.py",
        ("tests/unit/algorithms/test_actor_critics.py",),
        (
            "the actor of CQL clones once too often",
            "        return made + _COUNTED < int(config.bc_iters)",
            "        return made + 1 < int(config.bc_iters)",
        ),
    ),
    *_in(
        "rllib_compat/algorithms/off_policy.py",
        ("tests/unit/algorithms/test_old_replay.py",),
        (
            "new steps have the greatest priority of all",
            '        "first": 1.0 if before else None,  # the weight that policies gave each step',
            '        "first": None,',
        ),
        (
            "targets of an old Ray wait for the next fragment",
            '        "waits": not before,',
            '        "waits": True,',
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/connectors.py",
        ("tests/unit/runtime/test_old_filters.py",),
        (
            "what an env runner saw is added again and again",
            "            _add(own, other, -1)",
            "            _add(own, other, 0)",
        ),
    ),
    *_in(
        "rllib_compat/runtime/learners.py",
        ("tests/unit/algorithms/test_actor_critics.py",),
        (
            "the temperature of discrete actions only falls",
            "        return 0.98 * float(np.log(space.n))",
            "        return -1.0",
        ),
    ),
    *_in(
        "rllib_compat/runtime/episodes.py",
        ("tests/unit/runtime/test_cut_episodes.py",),
        (
            "an episode that was cut goes on for its agents",
            '    for part in (chunk, *getattr(chunk, "agent_episodes", {}).values()):',
            "    for part in (chunk,):",
        ),
    ),
    *_in(
        "rllib_compat/ray_versions/learners.py",
        ("tests/unit/algorithms/test_ppo.py", "tests/unit/algorithms/test_ddpg_losses.py"),
        (
            "optimizers make steps without gradients",
            "    if not any(moved):\n        return\n",
            "",
        ),
    ),
)
