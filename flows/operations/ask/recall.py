"""Answers a question from memories and past sessions, and journals what was recalled."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from cortex.flows.context import Context
from cortex.flows.operations.ask.listing import session_numbers
from cortex.flows.operations.lookup import doubts_on, scopes_of, session_here
from cortex.flows.recalling.recall_search import RecallResult, with_replaced
from cortex.flows.recalling.recall_search import search_store as search
from cortex.flows.recalling.session_context import (
    RUN_COLUMNS,
    Related,
    listed_results,
    related_to,
    with_session_context,
)
from cortex.hooks.echo import fingerprints_of
from cortex.hooks.evidence.question import DECIDED, EVERYTHING, listing_asked
from cortex.hooks.shown import row_of_shown
from cortex.hooks.tokens import tokens_in
from cortex.storage.published.catalogue import Catalogue
from cortex.storage.store import Store
from cortex.storage.tables.tables import Searchable
from cortex.transforms.errors import EmptyQuestion, NotFound, StoreNotWritable
from cortex.transforms.journal_entries import Recall
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.schemas import TURNS, Row
from cortex.transforms.search import (
    NO_LIMITS,
    SearchLimits,
    limits_in,
    query_terms,
    search_settings,
    session_limits,
)
from cortex.transforms.words.ages import start_of


@dataclass(frozen=True)
class Recalled:
    """
    What answers a question, best first.

    `doubts` holds what the repositories say against a match, by its id; `related` the memories near the
    matches, nearest first; `project_names` the name of each project by id; `warning` why the recall could not
    be journaled, "" where it was; `session_numbers` which sessions of their project they are from, by id.
    """

    matches: Sequence[RecallResult]
    doubts: Mapping[str, Doubt]
    related: "Sequence[Related]"
    project_names: Mapping[str, str]
    warning: str = ""
    limits: SearchLimits = NO_LIMITS
    note: str = ""
    session_numbers: Mapping[str, int] = field(default_factory=dict)


def recall(
    context: Context,
    question: str,
    *,
    project: str | None = None,
    all_projects: bool = False,
    limit: int = 10,
    related: int = 0,
    as_of: str | None = None,
    skip: int = 0,
    depth: int = 0,
    with_nearby: bool = True,
    limits: SearchLimits = NO_LIMITS,
) -> Recalled:
    """
    Search memories and what was said in sessions; what is recalled is reinforced with the next run.

    The best `skip` matches are left out: they were shown before; at least `depth` are looked for, so that
    pages up to there are cut out of one order. Memories within `related` edges of the matches follow them,
    and are not reinforced. A look at an earlier day, `as_of` as `2026-09-14`, reinforces nothing, and the
    repository of today has no say in it. With `with_nearby`, what is close together in a session and bears
    on the question is one result. Only what meets `limits` is found, and what the question itself is limited
    to ("last week", "in session 0211", "sessions 5-8"; as far as anything meets that). Raises EmptyQuestion,
    NotFound for an empty store, UnknownProject.
    """
    store = context.open_store()
    if not query_terms(question, context.policy):
        raise EmptyQuestion("the question has no word to search for.", 'Ask: cortex recall "which database"')
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {context.home} is empty.", "Fill it: cortex backfill")
    scopes = scopes_of(context, store, project, all_projects=all_projects)
    names = store.projects.labels()
    depth = max(depth, skip + limit)
    if as_of is not None:
        # Imported here: what makes the tables of an earlier day takes half a second to import.
        from cortex.flows.operations.ask.sql import store_as_of

        past = store_as_of(context, as_of, scopes, searchable=True)
        search_in = _Search(context, store, past.store.tables, scopes, depth, past.now, with_nearby)
        matches, met, note = search_in.within(question, limits)
        numbers = session_numbers(context, scopes)
        matches = matches[skip : skip + limit]
        return Recalled(matches, {}, (), names, limits=met, note=note, session_numbers=numbers)
    search_in = _Search(context, store, store.tables, scopes, depth, context.now, with_nearby)
    matches, met, note = search_in.within(question, limits)
    matches = with_replaced(store.tables, matches[skip : skip + limit])
    if with_nearby:
        turns_of = partial(_turns_run, store)
        matches = with_session_context(matches, question, context.policy, turns_of)
    warning = _reinforce(context, store, matches)
    shown: dict[str, list[str]] = {}
    for match in matches:
        shown.setdefault(match.project_id, []).extend(match.memory_ids)
    doubts = doubts_on(context, store, {scope: ids for scope, ids in shown.items() if ids})
    numbers = session_numbers(context, scopes)
    if not related:
        return Recalled(matches, doubts, (), names, warning, met, note, numbers)
    near = related_to(matches, store.tables, depth=related)
    return Recalled(matches, doubts, near, names, warning, met, note, numbers)


def _turns_run(store: Store, scope: str, sessions: Collection[str]) -> list[Row]:
    """Return the turns of some sessions of a project, without those that a forgotten memory rested on."""
    forgotten = set(store.journal.forgotten_turns())
    turns = store.lake.read(TURNS, scope, RUN_COLUMNS, sessions=set(sessions)).to_pylist()
    return [turn for turn in turns if turn["turn_id"] not in forgotten]


def limits_from(
    context: Context,
    *,
    since: str | None = None,
    until: str | None = None,
    session: str | None = None,
    branch: str | None = None,
    file: str | None = None,
) -> SearchLimits:
    """
    Return the limits that a caller's words mean; `since` and `until` are days as `start_of` reads them, both
    included.

    `session` is a number, a range of numbers ("5-8"), or the beginning of an id.

    Raises UsageError for what is no day.
    """
    sessions: frozenset[str] = frozenset()
    if branch:
        rows = Catalogue(context.home).read("sessions", ["session_id", "git_branch"])
        sessions = frozenset(row["session_id"] for row in rows if row["git_branch"] == branch)
    named = session_limits(session) if session else NO_LIMITS
    return replace(
        named,
        since=start_of(since, "--since", context.now) if since else None,
        until=start_of(until, "--until", context.now) + timedelta(days=1) if until else None,
        branch=branch or "",
        branch_sessions=sessions,
        file=file or "",
    )


def search_only(
    context: Context,
    question: str,
    *,
    project: str | None = None,
    all_projects: bool = False,
    limit: int = 10,
) -> list[RecallResult]:
    """Search as `recall` does and note nothing; a question without a word to search for has no answer."""
    store = context.open_store()
    if store.is_empty or not query_terms(question, context.policy):
        return []
    scopes = scopes_of(context, store, project, all_projects=all_projects)
    search_in = _Search(context, store, store.tables, scopes, limit, context.now, with_nearby=True)
    matches, _, _ = search_in.within(question, NO_LIMITS)
    return with_replaced(store.tables, matches)


@dataclass(frozen=True)
class _Search:
    """Where and how a question is asked."""

    context: Context
    store: Store
    tables: Searchable
    scopes: Sequence[str]
    limit: int
    now: datetime
    with_nearby: bool

    def within(self, question: str, limits: SearchLimits) -> tuple[list[RecallResult], SearchLimits, str]:
        """Return results within the limits, also those that the question names, the limits, and a note."""
        own, rest = limits_in(question, self.now, self.context.policy)
        limits = self._with_sessions(limits)
        if limits.numbers and not limits.numbered:
            raise NotFound(
                f"there is no memory {limits}.", "`cortex timeline` numbers the sessions of a project."
            )
        if own.is_empty:
            matches, note = self.results(question, limits)
            return matches, limits, note
        both = self._with_sessions(limits.narrowed(own))
        matches, note = self.results(rest, both)
        kind = listing_asked(rest, search_settings(self.context.policy), is_limited=True)
        if matches or kind == EVERYTHING:
            return matches, both, note
        matches, _ = self.results(rest if kind else question, limits)
        return matches, limits, f"Nothing was found {own}. Other results:" if matches else ""

    def results(self, question: str, limits: SearchLimits) -> tuple[list[RecallResult], str]:
        """Return what is found within the limits, best first, or what is listed, newest first; and a note."""
        is_limited = not limits.is_empty
        if kind := listing_asked(question, search_settings(self.context.policy), is_limited=is_limited):
            listed = self._listed(kind, limits)
            if not listed and is_limited and kind == DECIDED:
                listed = self._listed(EVERYTHING, limits)
                return listed, f"No decision was found {limits}; this is what there is." if listed else ""
            if listed or is_limited:
                return listed, ""
        results = search(
            self.tables, question, scopes=self.scopes, policy=self.context.policy,
            embedder=self.context.embedder(), limit=self.limit, with_nearby=self.with_nearby, limits=limits,
        )  # fmt: skip
        return results, ""

    def _listed(self, kind: str, limits: SearchLimits) -> list[RecallResult]:
        # Imported here: most questions have a subject, and need none of it.
        return listed_results(self.tables, self.scopes, limits, kind, limit=self.limit)

    def _with_sessions(self, limits: SearchLimits) -> SearchLimits:
        """Return limits with the ids of the sessions that they name by numbers."""
        if limits.numbers is None:
            return limits
        first, last = limits.numbers
        numbers = session_numbers(self.context, self.scopes)
        return replace(limits, numbered=frozenset(n for n, at in numbers.items() if first <= at <= last))


def _reinforce(context: Context, store: Store, matches: Sequence[RecallResult]) -> str:
    """Journal what was recalled and shown; return why not if the store cannot be written."""
    by_scope: dict[str, list[RecallResult]] = {}
    for match in matches:
        by_scope.setdefault(match.project_id, []).append(match)
    at = context.now
    try:
        for scope, shown in by_scope.items():
            entry = Recall(
                sorted({name for match in shown for name in match.memory_ids}),
                sorted({mark for text in _texts_of(shown) for mark in fingerprints_of(text)}),
            )
            store.journal.write(entry.to_row(scope, recorded_at=at, actor="recall"))
        _log_shown(context, store, matches)
    except StoreNotWritable as error:
        return f"Not noted as recalled: {error.problem}"
    return ""


def _log_shown(context: Context, store: Store, matches: Sequence[RecallResult]) -> None:
    """Note which memories a session of the assistant was shown, if one asked."""
    session = session_here()
    memory_ids = sorted({name for match in matches for name in match.memory_ids})
    # Without a session, nothing is looked up: a folder's name passes the rules for secrets, .2 s to compile.
    project_id = store.projects.known(str(context.folder)) if session and memory_ids else None
    if session and project_id:
        tokens = tokens_in("\n".join(_texts_of(matches)))
        row = row_of_shown("recall", project_id, session, memory_ids, tokens, context.now.isoformat())
        store.calls.write({**row, "called_at": context.now})


def _texts_of(matches: Sequence[RecallResult]) -> list[str]:
    return [text for match in matches for text in match.texts]
