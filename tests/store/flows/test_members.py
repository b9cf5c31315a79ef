"""Roles of members at a team's place, and the team's key: what is refused, and what is read."""

import os

import pytest

from cortex.storage.lake.encryption import new_key
from cortex.storage.remote.bucket import bucket_at
from cortex.storage.remote.share_place import (
    SharePlace,
    decrypted_object,
    encrypted_object,
    rewrapped_object,
)
from cortex.transforms.documents.team_memory import Members, Unusable, read_members
from cortex.transforms.errors import FileDamaged, KeyUnavailable


def test_an_object_opens_under_its_name_with_its_key_and_whole():
    key, other = new_key(), new_key()
    wrapped = encrypted_object(key, b"words", "share/kelp/a.json")
    assert decrypted_object(key, wrapped, "share/kelp/a.json") == b"words" and b"words" not in wrapped
    turned = rewrapped_object(key, other, wrapped, "share/kelp/a.json")
    assert decrypted_object(other, turned, "share/kelp/a.json") == b"words"
    with pytest.raises(KeyUnavailable):
        decrypted_object(key, turned, "share/kelp/a.json")
    for content, name in (
        (wrapped, "share/kelp/b.json"),
        (wrapped[:-9] + b"\n}", "share/kelp/a.json"),
        (b"{}", "a"),
    ):
        with pytest.raises(FileDamaged):
            decrypted_object(key, content, name)


def team_place(folder, key=None):
    return SharePlace(f"file://{folder}", "a" * 16, key)


def test_rotation_seals_nothing_that_was_in_clear_under_a_key_and_one_bad_object_stops_nothing(tmp_path):
    first, second, other = new_key(), new_key(), new_key()
    team_place(tmp_path).put("kelp", b"ours, in clear")
    assert team_place(tmp_path).rewrap(first) == (1, []), "the team had no key: what lay there is its own"
    folder = tmp_path / "share" / "kelp"
    (folder / "bbbb.json").write_bytes(b"forged, in clear")
    (folder / "cccc.json").write_bytes(b'{"format": "cortex-envelope", "version": 1, "key": "9"}')
    (folder / "dddd.json").write_bytes(encrypted_object(other, b"x", "share/kelp/dddd.json"))
    (folder / "eeee.json").write_bytes(encrypted_object(first, b"moved", "share/kelp/ffff.json"))
    (folder / "gggg.json").write_bytes(encrypted_object(first, b"a colleague's", "share/kelp/gggg.json"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    bad = [f"share/kelp/{name * 4}.json" for name in "bcde"]
    assert team_place(tmp_path, first).rewrap(second) == (2, bad)
    assert all((tmp_path / name).read_bytes() == before[name[-9:]] for name in bad)
    assert team_place(tmp_path, second).rewrap(second) == (0, bad)
    read = team_place(tmp_path, second).others("kelp")
    assert [content for content in read.values() if content is not None] == [b"a colleague's"]
    assert team_place(tmp_path, second).own("kelp") == b"ours, in clear"


def test_a_key_that_opens_nothing_rotates_nothing(tmp_path):
    team_place(tmp_path, new_key()).put("kelp", b"ours")
    with pytest.raises(KeyUnavailable):
        team_place(tmp_path, new_key()).rewrap(new_key())


def test_what_is_larger_than_cortex_writes_is_not_read_and_a_pipe_holds_nobody_up(tmp_path):
    place = team_place(tmp_path)
    place.put("kelp", b"ours")
    folder = tmp_path / "share" / "kelp"
    with (folder / "bbbb.json").open("wb") as file:
        file.truncate(5_000_000_000)
    (folder / "cccc.json").write_bytes(b"a colleague's")
    assert list(place.others("kelp").values()) == [None, b"a colleague's"]
    place.check_key()
    assert place.rewrap(new_key())[1] == ["share/kelp/bbbb.json"]
    os.mkfifo(tmp_path / "share" / "members.json")
    with pytest.raises(FileDamaged, match="not one that Cortex wrote"):
        place.members()
    with pytest.raises(FileDamaged):
        bucket_at(f"file://{tmp_path}").fetch("share/kelp/bbbb.json", tmp_path / "copy", 100)
    assert not (tmp_path / "copy").exists()


def test_a_role_holds_by_project_and_else_for_all():
    members = Members().granted("a", "*", "writer").granted("a", "kelp", "").granted("b", "kelp", "admin")
    assert members.allows("a", "reef", "writer") and not members.allows("a", "reef", "admin")
    assert not members.allows("a", "kelp", "reader") and members.allows("b", "kelp", "reader")
    assert not members.allows("b", "reef", "reader") and not members.allows("c", "kelp", "reader")
    assert read_members(members.as_text().encode()) == members
    assert members.granted("b", "kelp", "").by_id.keys() == {"a"}
    for content in (
        b"",
        b"[]",
        b'{"format": "cortex-members", "version": 1, "members": {"a": {"roles": {"*": "king"}}}}',
    ):
        with pytest.raises(Unusable):
            read_members(content)
