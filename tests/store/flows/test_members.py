"""Roles of members at a team's place, and the team's key: what is refused, and what is read."""

import pytest

from cortex.storage.elsewhere.share_place import decrypted_object, encrypted_object, rewrapped_object
from cortex.storage.lake.encryption import new_key
from cortex.transforms.documents.members import Members, read_members
from cortex.transforms.documents.team_memory import Unusable
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
