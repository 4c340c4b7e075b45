"""What the guide's pages train, trains, and its commands on the bundled checkpoint print that."""

import pytest

from tests import docs
from tests.integration.test_start_pages import commands, type_command
from tests.processes import start_python

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
    done = start_python(tmp_path, script)
    assert done.returncode == 0, done.stderr[-2000:]


#: Pages whose commands follow each other: a later one verifies what an earlier one made.
TYPED = ("command_line", "convert_a_checkpoint", "policy_without_ray")


@pytest.mark.slow("a conversion for each page")
@pytest.mark.parametrize("page", TYPED)
def test_commands_on_the_bundled_checkpoint_print_what_the_page_says(page, tmp_path):
    (tmp_path / "rllib_compat").symlink_to(docs.ROOT / "rllib_compat")
    ran = 0
    for block in docs.blocks(docs.ROOT / f"migration_guide/{page}.md"):
        if block.language != "console" or "checked" in block.marks:
            continue
        for command, expected in commands(block):
            if "rllib_compat/demo_data" in command:
                type_command(command, tmp_path, expected)
                ran += 1
    assert ran
