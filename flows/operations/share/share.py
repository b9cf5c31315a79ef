"""Shares memories through a place: what is pushed and pulled, the members, their roles, the team's key."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.edit.apply import Applied, apply_now
from cortex.flows.operations.lookup import project_of
from cortex.flows.operations.share.team import as_team_memory, conflicts_in
from cortex.flows.stages.order import APPLY
from cortex.storage.filesystem.git import person_at
from cortex.storage.lake.encryption import make_key_file, read_key_file
from cortex.storage.remote.share_place import SharePlace, member_id
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from cortex.storage.store import Store
from cortex.transforms.documents.team_memory import (
    EVERYWHERE,
    Member,
    Members,
    SharedMemory,
    TeamMemory,
    Unusable,
    author_name,
    read_snapshot,
    snapshot_text,
)
from cortex.transforms.errors import FileDamaged, KeyUnavailable, NotFound, RoleMissing, UsageError
from cortex.transforms.journal_entries import TeamFact
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.team import (
    SHARE,
    TEAM_ACTOR,
    forgotten_in,
    joined_facts,
    team_changes,
    team_facts,
)
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.vocabulary import ADMIN, READER, WRITER

# -- Shares memories through a place: pushes what a person chose, by project, and pulls colleagues'.


@dataclass(frozen=True)
class ProjectPush:
    """
    What a push does for one project: memories `shared` then, `fresh` ones, and those `withdrawn` there.

    `left_out` counts memories by the reason why they stay here. `content` is None if all is withdrawn.
    """

    project_id: str
    name: str
    shared: int
    fresh: int
    withdrawn: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True)
class ProjectPull:
    """
    What a pull read for one project: memories colleagues share, those new here, those withdrawn here.

    `conflicts` counts those at odds with one's own that nobody has resolved, where the pull changed anything.
    """

    project_id: str
    name: str
    shared: int
    fresh: int
    withdrawn: int
    refusals: Mapping[str, int] = field(default_factory=dict)
    conflicts: int = 0


def plan_push(context: Context) -> list[ProjectPush]:
    """
    Return what a push would do, by project; it reads the place and writes nothing.

    Nothing is shared but the projects of the setting `share.projects`; of one that is no longer among them,
    what was shared is withdrawn. Raises UsageError without a place or a name, StoreUnreachable.
    """
    store, place = context.open_store(), open_place(context)
    chosen = _projects(context, store)
    if chosen:
        place.check_key()
        _check_roles(place, store, chosen, WRITER)
    pushes = []
    for project_id in sorted({*chosen, *place.own_projects()}):
        before = _statements(_own(place, project_id), context.policy)
        left_out: Counter[str] = Counter()
        shared = _shared(context, store, project_id, left_out) if project_id in chosen else []
        after = {each.memory.statement for each in shared}
        content = snapshot_text(shared).encode() if project_id in chosen else None
        name = store.projects.label_of(project_id)
        counts = (len(shared), len(after - before), len(before - after))
        pushes.append(ProjectPush(project_id, name, *counts, dict(left_out), content))
    return pushes


def push(context: Context, planned: Sequence[ProjectPush]) -> None:
    """Write what was planned: one object a project, which replaces the last one whole. Raises as planning."""
    place = open_place(context)
    for each in planned:
        if each.content is None:
            place.remove(each.project_id)
        else:
            place.put(each.project_id, each.content)


def pull(context: Context) -> tuple[list[ProjectPull], Applied]:
    """
    Journal how what colleagues share differs from what was pulled last, and put it into effect.

    What they withdrew is withdrawn here. A snapshot that cannot be read changes nothing of what is known of
    its member. Raises UsageError without a place, StoreUnreachable.
    """
    store, place = context.open_store(), open_place(context)
    place.check_initialised()
    # Colleagues may know a project by an id that was merged into another one here.
    chosen = {part for each in _projects(context, store) for part in store.projects.parts_of(each)}
    members = _check_roles(place, store, _projects(context, store), READER)
    pulls, rows = [], []
    for project_id in sorted({*chosen, *store.projects.places()}):
        journal = store.journal.read(project_id)
        held = team_facts(journal, SHARE)
        if project_id not in chosen and not held:
            continue
        whole = store.projects.canonical(project_id)
        others = place.others(project_id) if project_id in chosen else {}
        contents = _readable(others, members, (project_id, whole))
        facts, refusals = shared_facts(contents, held, project_id, context.policy, context.now)
        forgotten = forgotten_in(journal)
        facts = {name: fact for name, fact in facts.items() if name not in forgotten}
        changes = team_changes(held, facts, SHARE)
        rows += [
            entry.to_row(project_id, recorded_at=context.now, memory_id=name, actor=TEAM_ACTOR)
            for name, entry in changes.items()
        ]
        if project_id == whole or facts or held or refusals:
            counts = len(facts), len(facts.keys() - held.keys()), len(held.keys() - facts.keys())
            pulls.append(ProjectPull(project_id, store.projects.label_of(whole), *counts, dict(refusals)))
    for row in rows:
        store.journal.write(row)
    if not rows:
        return pulls, Applied(True)
    applied = apply_now(context, APPLY)
    run = read_only_run(context, with_model=False)
    return [replace(each, conflicts=len(conflicts_in(run, each.project_id))) for each in pulls], applied


def shared_facts(
    contents: Mapping[str, bytes | None],
    held: Mapping[str, TeamFact],
    project_id: str,
    policy: Policy,
    now: datetime,
) -> tuple[dict[str, TeamFact], Counter[str]]:
    """
    Return what snapshots (by name) say of a project, by memory_id, and what is set aside by its reason.

    `held` is what was pulled last: of a snapshot that cannot be read now, it stays.
    """
    facts: list[tuple[str, TeamFact]] = []
    refusals: Counter[str] = Counter()
    for path, content in sorted(contents.items()):
        try:
            if content is None:
                raise Unusable("it is damaged, not encrypted, or encrypted with another key")
            shared, refused = read_snapshot(content, policy)
        except Unusable as error:
            refusals[f"a whole snapshot: {error}"] += 1
            facts += [(name, _only(fact, path)) for name, fact in held.items() if path in fact.paths]
            continue
        refusals.update(refused)
        for each in shared:
            memory = each.memory
            name = memory_id(project_id, memory.memory_type, memory.statement)
            facts.append((name, _fact(memory, path, _instant(each.said_at, now))))
    return joined_facts(facts), refusals


def _only(fact: TeamFact, path: str) -> TeamFact:
    """Return what one member shares of a fact that several may share."""
    authors = [author for author, each in zip(fact.authors, fact.paths, strict=False) if each == path]
    return replace(fact, paths=[path], authors=authors)


def _fact(memory: TeamMemory, path: str, said_at: str | None) -> TeamFact:
    return TeamFact(
        memory.statement,
        memory.memory_type,
        [path],
        [memory.author],
        list(memory.files),
        memory.reason or None,
        memory.rejected or None,
        said_at,
        SHARE,
    )


def _instant(text: str, now: datetime) -> str | None:
    """Return an instant of the past; None for any other text."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.isoformat() if at.tzinfo and at <= now else None


def open_place(context: Context) -> SharePlace:
    """Return the team's place. Raises UsageError if none is set, KeyUnavailable without the team's key."""
    uri = context.settings.share.place
    if not uri:
        raise UsageError(
            "no place is set to share at.", "Set one: cortex config set share.place file:///FOLDER"
        )
    file = context.settings.share.key_file
    return SharePlace(uri, member_id(str(context.home)), read_key_file(file) if file else None)


def _check_roles(place: SharePlace, store: Store, project_ids: Iterable[str], needed: str) -> Members | None:
    """Return who may do what. Raises RoleMissing if this member's role in a project is too little."""
    members = place.members()
    for project_id in sorted(project_ids) if members else ():
        if members and not members.allows(place.member, project_id, needed):
            role = members.role(place.member, project_id)
            raise RoleMissing(store.projects.label_of(project_id), role, needed)
    return members


def _readable(
    contents: Mapping[str, bytes | None], members: Members | None, project_ids: tuple[str, str]
) -> Mapping[str, bytes | None]:
    """
    Return the snapshots of those who may write: what another put there is not read.

    `project_ids` are the project's own and that of the one it was merged into, whose role holds where it has
    none of its own.
    """
    if members is None:
        return contents
    part, whole = project_ids

    def may_write(name: str) -> bool:
        owner = name.rpartition("/")[2].removesuffix(".json")
        scope = part if part in members.by_id.get(owner, Member()).roles else whole
        return members.allows(owner, scope, WRITER)

    return {name: content for name, content in contents.items() if may_write(name)}


def _own(place: SharePlace, project_id: str) -> bytes | None:
    try:
        return place.own(project_id)
    except (FileDamaged, KeyUnavailable):  # replaced whole by this push
        return None


def _projects(context: Context, store: Store) -> frozenset[str]:
    """Return the ids of the projects of `share.projects`; a folder that belongs to none is left out."""
    chosen: set[str] = set()
    for name in context.settings.share.projects:
        folder = Path(name).expanduser()
        if folder.is_absolute():
            chosen |= {known for known in [store.projects.known(str(folder))] if known}
        else:
            chosen |= set(store.projects.named(name))
    return frozenset(chosen)


def _shared(context: Context, store: Store, project_id: str, left_out: Counter[str]) -> list[SharedMemory]:
    """Return the memories of a project that are shared; count in `left_out` why others are not."""
    places = store.projects.paths_of(project_id)
    author = next(filter(None, (author_name(person_at(place)[0]) for place in places)), "")
    if not author:
        raise UsageError(
            "git does not know who you are.", 'Say it once: git config --global user.name "Your Name"'
        )
    shared = []
    rows = store.tables.open(project_id, "memories").read().to_pylist()
    for row in shareable(rows, context.policy.types_with("is_shared")):
        memory = as_team_memory(context, row, author, places)
        if isinstance(memory, str):
            left_out[memory] += 1
        else:
            shared.append(SharedMemory(memory, row["updated_at"].isoformat()))
    return shared


def shareable(rows: Iterable[Row], types: Container[str]) -> list[Row]:
    """Return the rows of MEMORIES that may be shared: active ones of those types, no colleague's."""
    return [
        row
        for row in rows
        if row["status"] == "active" and row["source_type"] != "team" and row["memory_type"] in types
    ]


def _statements(content: bytes | None, policy: Policy) -> set[str]:
    try:
        shared, _ = read_snapshot(content, policy) if content else ([], [])
    except Unusable:
        return set()
    return {each.memory.statement for each in shared}


# -- A team's members at its place: their roles by project, another's snapshot taken out, and the team's
# key.

MIN_MEMBER_CHARS = 4


@dataclass(frozen=True)
class MemberList:
    """
    The members at a place: `own` is this member's id, `members` who has which roles, None if nobody said.

    `pushed` gives the projects that each member shares, by member; it names those without a role too.
    """

    own: str
    members: Members | None
    pushed: Mapping[str, Sequence[str]]

    def of(self, member_id: str) -> Member:
        """Return what is said of a member."""
        return (self.members or Members()).by_id.get(member_id, Member())


def list_members(context: Context) -> MemberList:
    """Return who may do what at the team's place. Raises UsageError, StoreUnreachable, KeyUnavailable."""
    place = open_place(context)
    return MemberList(place.member, place.members(), place.pushed())


def grant(
    context: Context, member: str, role: str, *, project: str | None = None, name: str = ""
) -> MemberList:
    """
    Give a member a role in a project, or in all; "" takes it back.

    The first who does so becomes admin of every project. Raises RoleMissing for who is no admin there,
    NotFound, and UsageError if nobody would be admin of every project any more.
    """
    place = open_place(context)
    place.check_key()
    scope = project_of(context, context.open_store(), project) if project else EVERYWHERE
    before = place.members()
    members = before or Members().granted(place.member, EVERYWHERE, ADMIN)
    _check_admin(place, members, scope)
    target = _member(place, members, member)
    members = members.granted(target, scope, role, author_name(name))
    if not members.has_admin:
        raise UsageError("nobody would be admin any more.", "Make another member admin first.")
    place.put_members(members)
    return MemberList(place.member, members, place.pushed())


def remove_shared(context: Context, member: str, *, project: str | None = None) -> list[str]:
    """
    Remove what another member shares, of a project or of all; return the projects.

    Colleagues lose it with their next pull; the member's next push brings it back unless the role is taken
    too. Raises RoleMissing and NotFound.
    """
    place = open_place(context)
    members = place.members()
    if members is None:
        raise UsageError("nobody has a role here.", "Begin with: cortex team grant MEMBER ROLE")
    target = _member(place, members, member)
    wanted = project_of(context, context.open_store(), project) if project else None
    scopes = [name for name in place.pushed().get(target, ()) if wanted in (None, name)]
    for scope in scopes:
        _check_admin(place, members, scope)
    place.remove_snapshots_of(target, scopes)
    return scopes


def use_key(context: Context, file: Path) -> tuple[str, int, list[str]]:
    """
    Encrypt the place with the key in `file`, which is made if there is none; return id, count and names.

    The count is of objects that were encrypted or wrapped again, the names are of those that were not: in
    clear under a key, damaged, or under another key. Raises RoleMissing for who is no admin and would wrap
    others' objects (a damaged list names no admin), UsageError for a file in the place or the store,
    KeyUnavailable.
    """
    place, file = open_place(context), file.expanduser().absolute()
    folder = place.uri.removeprefix("file://")
    if place.uri.startswith("file://") and file.resolve().is_relative_to(Path(folder).resolve()):
        raise UsageError(f"{file} is inside the place that it would encrypt.", "Give a path outside of it.")
    is_joining = place.key is None and place.is_encrypted
    if is_joining and not file.exists():
        place.check_key()
    key = make_key_file(file, context.home)
    count = 0
    skipped: list[str] = []
    if is_joining:
        SharePlace(place.uri, place.member, key).check_key()
    else:
        # A damaged list of members says who is an admin of nobody; it stays as it is, and `rewrap` names it.
        with suppress(FileDamaged):
            members = place.members()
            if members is not None:
                _check_admin(place, members, EVERYWHERE)
        count, skipped = place.rewrap(key)
    ConfigFile(context.home).set(key_of("share.key_file"), str(file))
    return key.id, count, skipped


def _check_admin(place: SharePlace, members: Members, scope: str) -> None:
    if not members.allows(place.member, scope, ADMIN):
        what = "every project" if scope == EVERYWHERE else scope
        raise RoleMissing(what, members.role(place.member, scope), ADMIN)


def _member(place: SharePlace, members: Members, named: str) -> str:
    """Return the member whose id begins with `named`, or whose name it is. Raises NotFound and UsageError."""
    ids = {place.member, *members.by_id, *place.pushed()}
    is_id = len(named) >= MIN_MEMBER_CHARS
    matches = {each for each in ids if is_id and each.startswith(named)}
    matches |= {key for key, each in members.by_id.items() if each.name == named}
    if len(matches) > 1:
        raise UsageError(f"'{named}' means several members.", "Give more of the id: cortex team members")
    if not matches and len(named) == len(place.member) and not named.strip("0123456789abcdef"):
        return named  # one who has not pushed yet
    if not matches:
        raise NotFound(f"no member is '{named}'.", "Each sees their own id with: cortex team members")
    return matches.pop()
