"""What the guide's pages train, trains: each block is a process of its own."""

import subprocess
import sys

import pytest

from tests import docs

pytestmark = [pytest.mark.ray, pytest.mark.newest, pytest.mark.nightly]

#: What a page has before a block, or what is old or meant as a part.
LEFT_OUT = {
    "convert_a_checkpoint": "files of the reader",
    "custom_models": "files of the reader",
    "index": "the first of three is code of Ray 0.8; the start pages run such scripts",
    "offline_data": "a function that the reader calls",
    "upgrade": "code before and after it was rewritten",
}
BLOCKS = [
    block
    for page in docs.documents()
    for block in docs.blocks(page)
    if block.language == "python" and docs.TRAINS.search(block.body) and page.stem not in LEFT_OUT
]


@pytest.mark.slow("each block starts a Ray of its own")
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_that_trains_runs(block, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(block.body)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
