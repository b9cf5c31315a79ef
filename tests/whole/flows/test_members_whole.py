"""Roles of members at a team's place, and the team's key: what is refused, and what is read."""

from pathlib import Path

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.edit.remember import remember
from cortex.flows.operations.share.share import (
    grant,
    list_members,
    plan_push,
    pull,
    push,
    remove_shared,
    use_key,
)
from cortex.storage.settings.settings import Settings, ShareSettings, load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import FileDamaged, KeyUnavailable, RoleMissing, UsageError
from tests.bench import NOW, words_for_a_model
from tests.whole.flows.test_team import PNPM, UTC_RULE, git


class Desk:
    """A person's store and clone at a team's place."""

    def __init__(self, root: Path, name: str) -> None:
        self.clone, self.home = root / name / "kelp", root / name / "home"
        git(root, "init", "-q", "-b", "main", str(self.clone))
        git(self.clone, "remote", "add", "origin", "https://example.org/team/kelp.git")
        git(self.clone, "config", "user.name", name.title())
        git(self.clone, "config", "user.email", f"{name}@example.org")
        self.place = f"file://{root}/place"
        self.home.mkdir()

    def context(self) -> Context:
        key = load_settings(self.home).share.key_file
        settings = Settings(home=self.home, share=ShareSettings(self.place, (str(self.clone),), key))
        return Context(settings, words_for_a_model, lambda: NOW, folder=self.clone)

    def remember(self, text: str) -> None:
        remember(self.context(), text, memory_type="decision")

    def push(self) -> None:
        push(self.context(), plan_push(self.context()))

    @property
    def id(self) -> str:
        return list_members(self.context()).own

    def texts(self) -> set[str]:
        tables = Store(self.home).tables
        rows = (row for scope in tables.scopes() for row in tables.open(scope, "memories").read().to_pylist())
        return {row["text"] for row in rows if row["status"] == "active"}


@pytest.fixture
def ana(tmp_path: Path) -> Desk:
    return Desk(tmp_path, "ana")


@pytest.fixture
def bo(tmp_path: Path) -> Desk:
    return Desk(tmp_path, "bo")


def test_a_reader_pulls_a_writer_pushes_and_an_admin_removes(ana, bo):
    ana.remember(PNPM)
    bo.remember(UTC_RULE)
    ana.push()
    pull(bo.context())
    assert PNPM in bo.texts(), "before anybody has a role, all may"

    listed = grant(ana.context(), bo.id, "reader", name="Bo")
    assert listed.members.allows(ana.id, "any", "admin") and listed.of(bo.id).name == "Bo"
    with pytest.raises(RoleMissing, match="reader of kelp, and this needs a writer") as refused:
        bo.push()
    assert refused.value.code == "CORTEX_E321"
    pull(bo.context())
    with pytest.raises(RoleMissing):
        grant(bo.context(), bo.id, "admin")
    with pytest.raises(UsageError, match="nobody would be admin"):
        grant(ana.context(), ana.id, "reader")

    grant(ana.context(), "Bo", "writer", project=str(ana.clone))
    bo.push()
    pull(ana.context())
    assert UTC_RULE in ana.texts()
    with pytest.raises(RoleMissing):
        remove_shared(bo.context(), ana.id)
    assert len(remove_shared(ana.context(), "Bo")) == 1
    pull(ana.context())
    assert UTC_RULE not in ana.texts()

    bo.push()
    grant(ana.context(), "Bo", "", project=str(ana.clone))
    pull(ana.context())
    assert UTC_RULE not in ana.texts(), "what lies there of one who may not write is not read"
    with pytest.raises(RoleMissing, match="no role"):
        pull(bo.context())


def test_a_damaged_list_of_members_keeps_nobody_from_a_new_key_and_is_named(ana, tmp_path):
    ana.remember(PNPM)
    ana.push()
    grant(ana.context(), ana.id, "admin", name="Ana")
    use_key(ana.context(), tmp_path / "first.key")
    [members] = (tmp_path / "place").rglob("members.json")
    for content in (b'{"format": "cortex-members"', b"\0" * 50):
        members.write_bytes(content)
        assert use_key(ana.context(), tmp_path / f"{len(content)}.key")[1:] == (1, ["share/members.json"])
        assert members.read_bytes() == content
        with pytest.raises(FileDamaged, match="an admin then grants the roles again"):
            ana.push()
    members.unlink()
    grant(ana.context(), ana.id, "admin", name="Ana")
    ana.push()


def test_a_team_s_key_is_needed_rotates_and_leaves_nothing_readable_behind(ana, bo, tmp_path):
    first, second = tmp_path / "first.key", tmp_path / "second.key"
    ana.remember(PNPM)
    bo.remember(UTC_RULE)
    ana.push()
    assert use_key(ana.context(), first)[1] == 1, "what lay there in clear is wrapped"
    [file] = [each for each in (tmp_path / "place").rglob("*.json") if each.parent.name != "share"]
    assert PNPM.encode() not in file.read_bytes()
    for deed in (lambda: pull(bo.context()), bo.push, lambda: use_key(bo.context(), tmp_path / "own.key")):
        with pytest.raises(KeyUnavailable):
            deed()
    use_key(bo.context(), first)
    pull(bo.context())
    assert PNPM in bo.texts()
    bo.push()

    old = file.read_bytes()
    assert use_key(ana.context(), second)[1] == 2 and use_key(ana.context(), second)[1] == 0
    with pytest.raises(KeyUnavailable):
        pull(bo.context())
    use_key(bo.context(), second)
    pull(bo.context())
    pull(ana.context())
    assert UTC_RULE in ana.texts() and PNPM in bo.texts()
    assert old != file.read_bytes()

    # What somebody without the key puts there is not read, and takes nothing away.
    file.write_bytes(b'{"format": "cortex-shared", "version": 1, "memories": []}')
    [pulled], _ = pull(bo.context())
    assert sum(pulled.refusals.values()) == 1 and PNPM in bo.texts()
    with pytest.raises(UsageError, match="inside the place"):
        use_key(ana.context(), tmp_path / "place" / "team.key")
