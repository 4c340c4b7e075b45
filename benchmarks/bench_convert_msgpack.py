"""`rllib-compat convert --to msgpack` against Ray's own `convert_to_msgpack_checkpoint`.

Ray's function builds the whole algorithm first, so the checkpoint has to be one that the installed
Ray can open: it is made here by the old API stack of the same Ray. Ours reads the files, and
compares the outputs of old and new on 1000 inputs as well, which Ray's does not.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import Contender, compare

MAKE = """
import sys
from ray.rllib.algorithms.ppo import PPOConfig

layers = {"fcnet_hiddens": [int(sys.argv[2])] * 2}
config = PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=0)
config.training(train_batch_size=200, minibatch_size=50, num_epochs=1, model=layers)
config.api_stack(enable_env_runner_and_connector_v2=False, enable_rl_module_and_learner=False)
algorithm = config.build_algo()
algorithm.train()
# Ray 2.60 keeps classes in here, which its own conversion then fails to serialize.
algorithm.config._is_frozen = False
algorithm.config.stats_cls_lookup = {}
algorithm.get_policy().config["stats_cls_lookup"] = {}
algorithm.save(sys.argv[1])
algorithm.stop()
"""

RAYS = """
import os, sys
from ray.rllib.utils.checkpoints import convert_to_msgpack_checkpoint

os.makedirs(sys.argv[2])
convert_to_msgpack_checkpoint(sys.argv[1], sys.argv[2])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=256, help="units of both layers")
    options = parser.parse_args()
    cli = shutil.which("rllib-compat", path=Path(sys.executable).parent) or "rllib-compat"
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        make = [sys.executable, "-c", MAKE, str(old), str(options.hidden)]
        made = subprocess.run(make, capture_output=True, text=True, check=False)
        if made.returncode:
            sys.exit(f"Ray could not make the checkpoint:\n{made.stderr}")

        def clear() -> None:
            shutil.rmtree(new, ignore_errors=True)

        def written(_: str) -> bool:
            policy = new / "policies" / "default_policy"
            return (policy / "rllib_checkpoint.json").is_file()

        compare(
            Contender(
                "rllib-compat convert --to msgpack",
                [cli, "convert", str(old), str(new), "--to", "msgpack"],
                clear,
                written,
            ),
            Contender(
                "ray convert_to_msgpack_checkpoint",
                [sys.executable, "-c", RAYS, str(old), str(new)],
                clear,
                written,
            ),
            options.repetitions,
        )


if __name__ == "__main__":
    main()
