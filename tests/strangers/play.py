"""Runs the scripts here, one after the other in one Ray, and writes what each has noted.

    python tests/strangers/play.py FACTS.json NAME…                     inside an old Ray
    rllib-compat run tests/strangers/play.py FACTS.json NAME…           here

A script starts a Ray and ends it, as its author's did; here it is one for all but those that are
about just this. It runs on the Pythons of old Rays, so it imports nothing of this repository.
"""

import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import traceback
import types

SCRIPTS = str(pathlib.Path(__file__).resolve().with_name("scripts"))
SECONDS = 180  # for one script, on a busy machine
OWN_RAY = "rays_"  # so scripts begin that are about starting a Ray


def code_of(path):
    """The Python of a script or a notebook."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".ipynb"):
        return text
    cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell) for cell in cells).split("\n")
    return "\n".join(line for line in lines if line[:1] not in ("%", "!"))


def play(name):
    """What a script has noted, or how it failed."""
    import facts

    facts.noted.clear()
    os.environ.pop("RLLIB_COMPAT_TODAYS_GYM", None)  # another script has imported gymnasium
    path = os.path.join(SCRIPTS, name)
    main = types.ModuleType("__main__")
    main.__file__ = path
    before, sys.modules["__main__"], sys.argv[:] = sys.modules["__main__"], main, [path]
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(code_of(path), path, "exec"), main.__dict__)
    except (Exception, SystemExit) as error:
        return {
            "failed": "".join(traceback.format_exception_only(type(error), error)).strip()[-600:],
            "where": "".join(traceback.format_tb(error.__traceback__)[-4:])[-1500:],
        }
    finally:
        signal.alarm(0)
        sys.modules["__main__"] = before
        main.__dict__["__name__"] = name  # what it has defined lives on in Ray
    return dict(facts.noted)


def too_long(*_):
    """Ends a script."""
    raise RuntimeError("it took longer than %d seconds" % SECONDS)


def nothing(*_, **__):
    """What scripts call instead of starting or ending a Ray, where all share one."""


def begin(out, *names):
    """Plays scripts."""
    os.environ["HOME"] = tempfile.mkdtemp()  # results of Tune
    sys.path.insert(0, SCRIPTS)
    os.environ["PYTHONPATH"] = SCRIPTS + os.pathsep + os.environ.get("PYTHONPATH", "")  # workers'
    import ray

    start, end = ray.init, ray.shutdown
    found = {}
    for name in names:
        own = name.startswith(OWN_RAY)
        if own:
            end()
        elif not ray.is_initialized():
            start(num_cpus=4)
        ray.init, ray.shutdown = (start, end) if own else (nothing, nothing)
        found[name] = play(name)
        sys.stderr.write("%s: %s\n" % (name, found[name].get("failed", "played")))
        with open(out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1, sort_keys=True)
            file.write("\n")


if __name__ == "__main__":
    begin(*sys.argv[1:])
