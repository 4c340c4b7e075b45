"""What a report says of a source's files is what `sha256sum` says of them."""

import hashlib

import pytest

from rllib_compat.neutral import digests


@pytest.fixture(params=[0, 1 << 28], ids=["meanwhile", "at once"])
def large(request, monkeypatch):
    monkeypatch.setattr(digests, "_LARGE", request.param)


@pytest.mark.usefixtures("large")
def test_a_digest_is_the_same_whether_it_is_computed_at_once_or_meanwhile(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "some").write_bytes(bytes(range(256)) * 40_000)
    found = digests.Digests()
    for file in sorted(tmp_path.iterdir()):
        found.note(file.name, memoryview(file.read_bytes()))
    expected = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.iterdir()
    }
    assert found == expected
    outer = digests.Digests()
    outer.include("inner", found)
    assert outer == {f"inner/{name}": digest for name, digest in expected.items()}
