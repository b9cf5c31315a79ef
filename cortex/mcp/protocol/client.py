"""A client: what it may see, how often it may call, and the note of each call."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from os import getpid
from pathlib import Path
from threading import Lock
from time import monotonic, perf_counter, time_ns
from typing import Any, TypeVar

from anyio import CapacityLimiter

from cortex.flows.context import Context
from cortex.mcp.protocol.access import (
    ADMIN,
    DELETE,
    MIN_ROLE,
    READ,
    WRITE,
    CallerRoles,
    allows,
    folders_of_roles,
    may_delete,
    needed_scope,
    roles_of,
)
from cortex.mcp.protocol.call import ChoiceNeeded
from cortex.mcp.protocol.idle_release import SharedModel
from cortex.storage.settings.settings import Settings, load_settings
from cortex.transforms.errors import CortexError, InternalError, RateLimited, RoleMissing, ScopeMissing
from cortex.transforms.vocabulary import GLOBAL_SCOPE

# -- The rate limit: a maximum number of calls within any minute, counted exactly even if they arrive at once.

WINDOW_SECONDS = 60.0


@dataclass
class SlidingWindow:
    """The instants of the calls that were admitted within the last WINDOW_SECONDS; `clock` is in seconds."""

    clock: Callable[[], float] = monotonic
    _admitted_at: deque[float] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def admit(self, limit: int) -> None:
        """Count a call. Raises RateLimited, and does not count it, if `limit` were admitted already."""
        with self._lock:
            now = self.clock()
            while self._admitted_at and now - self._admitted_at[0] >= WINDOW_SECONDS:
                self._admitted_at.popleft()
            if len(self._admitted_at) >= limit:
                wait_s = WINDOW_SECONDS - (now - self._admitted_at[-limit])
                raise RateLimited(
                    f"{limit} calls within a minute are allowed, and all are used.",
                    f"Wait {wait_s:.0f} seconds, or raise mcp.calls_per_minute.",
                )
            self._admitted_at.append(now)

    @property
    def is_idle(self) -> bool:
        """Return whether no call was admitted within the last WINDOW_SECONDS."""
        with self._lock:
            return not self._admitted_at or self.clock() - self._admitted_at[-1] >= WINDOW_SECONDS


Performed = TypeVar("Performed")
_log = logging.getLogger(__name__)

# Of the settings `mcp.projects` and `mcp.http_projects`.
EVERY = "*"
CALLS_TABLE = "calls"
MAX_IN_LINE = 4


@dataclass(frozen=True)
class Caller:
    """
    Who calls: `name` as the audit log has it, and the scopes of its token.

    A program on this machine, which is its user's, has no token: its scopes are None.
    """

    name: str
    scopes: frozenset[str] | None = None


@dataclass
class Client:
    """
    A client, of which a server over stdio has one and a server over HTTP one for each that a token names.

    `base` gives folder, clock and the way to the embedding model; the settings are read with each call, so
    that a change acts at once. `principal` is whom the tokens are about, "" over stdio.
    """

    base: Context
    transport: str = "stdio"
    window: SlidingWindow = field(default_factory=SlidingWindow)
    principal: str = ""
    # This many of its calls wait at a time, so that one busy client does not keep others waiting.
    turns: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MAX_IN_LINE))
    _server: str = field(default_factory=lambda: f"{getpid()}-{time_ns()}")
    _numbers: "count[int]" = field(default_factory=count)
    _refused_at: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Load the embedding model once, for this client or for all that share it."""
        self.base = with_shared_model(self.base)

    def context(self) -> Context:
        """Return the context of a call. Raises UsageError for settings that cannot be read."""
        # Imported here, as below: it brings the tables, which nothing needs before the first call.
        from cortex.flows.operations.lookup import scopes_in_reach

        settings = load_settings(self.base.home)
        folder = self.base.folder
        roles = self.roles(settings)
        if self.principal:
            folders = folders_seen_by(self.principal, settings.mcp.http_projects)
            named = [name for name in folders if name != EVERY]
            if roles is not None:
                if EVERY in folders:
                    named += folders_of_roles(self.principal, settings.mcp.http_roles)
                named = self._by_role(named, roles)
            kept = (*named, *([EVERY] if EVERY in folders else []))
            settings = replace(settings, mcp=replace(settings.mcp, projects=kept))
            # The store's own folder belongs to no project: a caller who may see none is in none.
            folder = Path(named[0]).expanduser() if named else self.base.home
        context = replace(self.base, settings=settings, folder=folder)
        context = replace(context, visible=scopes_in_reach(context))
        return context if roles is None else narrowed(context, roles, READ)

    def roles(self, settings: Settings) -> CallerRoles | None:
        """Return the caller's roles; None over stdio, and where the settings give nobody any."""
        if not self.principal or not settings.mcp.http_roles:
            return None
        return roles_of(self.principal, settings.mcp.http_roles, self._project_at)

    def _project_at(self, folder: str) -> str | None:
        return self.base.open_store().projects.known(str(Path(folder).expanduser()))

    def _by_role(self, folders: Sequence[str], roles: CallerRoles) -> list[str]:
        """Return the folders whose project the caller may read, those to write to first."""
        scopes = {folder: self._project_at(folder) or "" for folder in folders}
        readable = [folder for folder in folders if roles.allows(scopes[folder], READ)]
        return sorted(readable, key=lambda folder: not roles.allows(scopes[folder], WRITE))

    def perform(
        self, caller: Caller, tool: str, arguments: Mapping[str, Any], work: Callable[[Context], Performed]
    ) -> Performed:
        """
        Do the work of a call if scopes and rate limit allow it, and note it in the audit log.

        Raises ScopeMissing, RateLimited, and what the work raises; InternalError for what nobody foresaw.
        """
        began, context, outcome = perf_counter(), self.context(), "ok"
        called_at, costs = context.now, list[float]()
        context = replace(context, note_cost=costs.append)
        roles = self.roles(context.settings)
        is_admin = roles is None or roles.allows(GLOBAL_SCOPE, ADMIN)
        # Others' calls are no business of a caller over HTTP.
        if not (is_admin and allows(caller.scopes, ADMIN)):
            context = replace(context, hidden_tables=frozenset((CALLS_TABLE,)))
        try:
            self.window.admit(context.settings.mcp.calls_per_minute)
            needed = needed_scope("tools/call", tool, arguments)
            self.check_scope(caller, needed)
            return work(self._as_role_allows(context, tool, needed, arguments))
        except ChoiceNeeded:
            outcome = "asked"
            raise
        except CortexError as error:
            outcome = error.code
            raise
        except Exception as error:
            outcome = InternalError.code
            _log.exception("the tool %r crashed", tool)
            raise InternalError(
                f"the call failed ({type(error).__name__}).", "Check the store: cortex doctor"
            ) from error
        finally:
            if outcome != RateLimited.code or self._is_first_refusal():
                came = (called_at, outcome, perf_counter() - began, sum(costs))
                self._note(context, caller.name, tool, arguments, *came)

    def _as_role_allows(
        self, context: Context, tool: str, needed: str, arguments: Mapping[str, Any]
    ) -> Context:
        """
        Return the context of a call that its caller's role allows. Raises RoleMissing.

        Merges are planned and carried out in the projects alone of which the caller is admin.
        """
        roles = self.roles(context.settings)
        if roles is None:
            return context
        if needed == WRITE:
            own = GLOBAL_SCOPE if arguments.get("everywhere") else self._project_at(str(context.folder))
            _check_role(context, roles, own or GLOBAL_SCOPE, WRITE)
        if may_delete(tool):
            merged = narrowed(context, roles, DELETE)
            if needed == DELETE and not merged.visible:
                _check_role(context, roles, self._project_at(str(context.folder)) or GLOBAL_SCOPE, DELETE)
            return merged if merged.visible else context
        return context

    def check_scope(self, caller: Caller, needed: str) -> None:
        """Raise ScopeMissing where the caller's token does not allow what needs this scope."""
        if not allows(caller.scopes, needed):
            raise ScopeMissing(needed)

    def _note(
        self, context: Context, caller: str, tool: str, arguments: Mapping[str, Any], *came: Any
    ) -> None:
        from cortex.flows.operations.maintain.audit import CalledTool, note_call

        number = next(self._numbers)
        call = CalledTool(self._server, number, caller, self.transport, tool, arguments, *came)
        # A store that cannot be written is still read.
        with suppress(CortexError):
            note_call(context, call)

    def _is_first_refusal(self) -> bool:
        """Return whether no refusal was noted within a minute: a client gone wild must not fill the disk."""
        with self._lock:
            now = self.window.clock()
            is_first = self._refused_at is None or now - self._refused_at >= WINDOW_SECONDS
            if is_first:
                self._refused_at = now
            return is_first


def narrowed(context: Context, roles: CallerRoles, needed: str) -> Context:
    """Return the context with those projects alone in which the roles allow what needs this scope."""
    scopes = context.visible
    if scopes is None:
        store = context.open_store()
        scopes = frozenset((GLOBAL_SCOPE, *store.tables.scopes(), *store.projects.labels()))
    return replace(context, visible=frozenset(scope for scope in scopes if roles.allows(scope, needed)))


def _check_role(context: Context, roles: CallerRoles, scope: str, needed: str) -> None:
    if not roles.allows(scope, needed):
        is_global = scope == GLOBAL_SCOPE
        name = "what holds everywhere" if is_global else context.open_store().projects.label_of(scope)
        raise RoleMissing(name, roles.role(scope), MIN_ROLE[needed])


def folders_seen_by(principal: str, listed: Sequence[str]) -> tuple[str, ...]:
    """
    Return the folders that a caller sees, of those listed for all callers and for single ones.

    >>> folders_seen_by("ada", ("/srv/api", "ada=/srv/site", "bob=*"))
    ('/srv/api', '/srv/site')
    """
    for_all = (folder for folder in listed if folder.startswith(("/", "~", EVERY)))
    named = (name.partition("=") for name in listed if not name.startswith(("/", "~", EVERY)))
    return (*for_all, *(folder for subject, _, folder in named if subject == principal and folder))


def with_shared_model(context: Context) -> Context:
    """Return a context from which all clients get the same embedding model."""
    if isinstance(context.embedder_of, SharedModel):
        return context
    return replace(context, embedder_of=SharedModel(context.embedder_of))
