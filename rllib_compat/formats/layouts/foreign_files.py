"""What lies where a checkpoint's file should be: pointers, web pages, archives, nothing.

Checkpoints come by `git clone`, browsers and buckets, which leave something else in the place of a
file that they did not bring. It is known by its first bytes, and nothing of it is read further.
"""

from __future__ import annotations

import re
from pathlib import Path

from rllib_compat.formats.files import open_regular
from rllib_compat.neutral.frozen import frozen

_HEAD = 1024


@frozen
class ForeignFile:
    """What a file is that is no checkpoint's.

    Attributes:
        found: What it is, as a sentence.
        fix: How to get the file itself.
    """

    found: str
    fix: str


_LFS_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)
_ANNEX = re.compile(rb"\A(\.\./)*(\.git|git)?/?annex/objects/")
_PAGE = re.compile(rb"\A\s*(<!--.{0,400}?-->\s*)?<(!doctype html|html|head)\b", re.I | re.S)
_TITLE = re.compile(rb"<title[^>]*>\s*([^<]{1,80}?)\s*</title>", re.I)
_XML_ERROR = re.compile(rb"\A\s*<\?xml.{0,300}?<Error>.{0,100}?<Code>(\w{1,60})</Code>", re.S)
_JSON_ERROR = re.compile(rb'\A\s*\{\s*"(message|error)"\s*:\s*"([^"]{1,80})"')

#: The first bytes of an archive, and the command that unpacks it.
_ARCHIVES = (
    (b"PK\x03\x04", "zip", "unzip"),
    (b"\x1f\x8b", "gzip", "tar -xzf"),
    (b"BZh", "bzip2", "tar -xjf"),
    (b"\xfd7zXZ\x00", "xz", "tar -xJf"),
    (b"\x28\xb5\x2f\xfd", "zstd", "tar --zstd -xf"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
    (b"Rar!\x1a\x07", "rar", "unrar x"),
)
_TAR_AT, _TAR = 257, b"ustar"

_FOLDER = "Give the checkpoint's folder, of which it is a part."
_EXPORTED = "Give the checkpoint that it was exported from."

#: Names of files that people give for a checkpoint: what they are, and what to do.
_NAMES = tuple(
    (re.compile(names, re.IGNORECASE), ForeignFile(found, fix))
    for names, found, fix in (
        (
            r"params\.(json|pkl)",
            "It is the config of a trial, not a checkpoint.",
            "`rllib-compat config FILE` translates it. To convert, give the checkpoint beside it.",
        ),
        (
            r"progress\.csv|result\.json",
            "It is what a trial has logged, not a checkpoint.",
            "`rllib-compat plot` draws the trial's folder. To convert, give a checkpoint in it.",
        ),
        (
            r"(experiment_state|basic-variant-state|searcher-state|search_gen_state).*|tuner\.pkl"
            r"|trainable\.pkl",
            "It is what Tune kept of an experiment, not a checkpoint.",
            "`rllib-compat convert --recursive FOLDER OUT` converts the checkpoints of its folder.",
        ),
        (
            r"events\.out\.tfevents.*",
            "It is a log of TensorBoard, not a checkpoint.",
            "Give a checkpoint of the same trial.",
        ),
        (
            r".*\.tune_metadata|\.is_checkpoint|\.metadata\.(json|pkl)|\.lazy_checkpoint_marker",
            "It is what Tune kept of a checkpoint, without its weights.",
            "Give the file `checkpoint-N` or the folder that it lies beside.",
        ),
        (
            r"(learner|env_runner)_state\.\w+|(learner_)?state\.(pkl|msgpack)|rllib_checkpoint\.json"
            r"|checkpoint_version\.txt|metadata\.json|class_and_ctor_args\.pkl|.*_optimizer\.pt",
            "It is a part of a checkpoint.",
            _FOLDER,
        ),
        (
            r".*\.onnx",
            "It is a network that was exported to ONNX, without its config.",
            "Let it act with onnxruntime: its output `action` is what the environment takes. Else "
            "give the checkpoint that it was exported from.",
        ),
        (r".*\.(h5|hdf5|keras)", "It is a file of Keras, without its config.", _EXPORTED),
        (
            r"saved_model\.pb(txt)?|.*\.index|.*\.data-\d+-of-\d+|.*\.meta",
            "It is a file of TensorFlow's own, which has variables without a config.",
            _EXPORTED,
        ),
        (
            r".*\.np[yz]",
            "It is a file of numpy's arrays, without names of layers or a config.",
            "Give the checkpoint that they were taken from.",
        ),
    )
)


def identify_by_name(path: Path) -> ForeignFile | None:
    """What a file is by its name, beside checkpoints; None: it has no name that is known."""
    return next((kind for names, kind in _NAMES if names.fullmatch(path.name)), None)


def identify(path: Path) -> ForeignFile | None:
    """What a file is instead of a checkpoint's; None: it may be one."""
    with open_regular(path) as file:
        head = file.read(_HEAD)
    if not head:
        fix = "Copy or download it again; the disk may have been full."
        return ForeignFile("The file is empty.", fix)
    return _identify_pointer(head, path) or _identify_page(head)


def identify_archive(path: Path) -> ForeignFile | None:
    """An archive, which may have a whole checkpoint in it; None: it is none.

    It is asked of the path that was given, not of files in a checkpoint: torch's are zip archives.
    """
    with open_regular(path) as file:
        head = file.read(_HEAD)
    known = ((kind, by) for magic, kind, by in _ARCHIVES if head.startswith(magic))
    kind, unpack = next(known, ("", ""))
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        kind, unpack = "tar", "tar -xf"
    if not kind:
        return None
    if kind == "zip" and b"data.pkl" in head:
        return ForeignFile(
            "It is a file of torch, which holds weights without config and spaces.", _FOLDER
        )
    return ForeignFile(
        f"It is an archive ({kind}), not a checkpoint.",
        f"Unpack it (`{unpack} {path.name}`), and give the folder that comes out.",
    )


def _identify_pointer(head: bytes, path: Path) -> ForeignFile | None:
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        match = _LFS_SIZE.search(head)
        size = f" of {int(match[1]):,} bytes" if match else ""
        return ForeignFile(
            f"It is a Git-LFS pointer: the file itself{size} was not downloaded.",
            "Run `git lfs install && git lfs pull` in the repository. (Without git: download the "
            f"file `{path.name}` itself, on GitHub with the button `Download raw file`.)",
        )
    if _ANNEX.match(head):
        return ForeignFile(
            "It is a git-annex pointer: the file itself was not downloaded.",
            f"Run `git annex get {path.name}` in its folder.",
        )
    return None


def _identify_page(head: bytes) -> ForeignFile | None:
    found = ""
    if _PAGE.match(head):
        match = _TITLE.search(head)
        title = f", {match[1].decode('utf-8', 'replace')!r}" if match else ""
        found = f"It is a web page{title}, saved under this name."
    elif match := _XML_ERROR.match(head):
        found = f"It is an error message of a storage service ({match[1].decode()})."
    elif match := _JSON_ERROR.match(head):
        text = match[2].decode("utf-8", "replace")
        found = f"It is an error message of a web service ({text!r})."
    fix = "Download the file itself (on GitHub: `Download raw file`), not the page that shows it."
    return ForeignFile(found, fix) if found else None
