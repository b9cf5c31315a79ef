"""The stages behind extract: embed, link, decay, consolidate, render; each reads, transforms, commits."""

import json
from functools import partial

import pyarrow as pa

from cortex.errors import ModelUnavailable
from cortex.flows.briefs import archive_of, brief_made_from, brief_of, drop_merged
from cortex.flows.context import Run
from cortex.flows.erase import TO_WIPE, erase, retire, wipe
from cortex.flows.extract import extract
from cortex.flows.hook_notes import publish_notes
from cortex.flows.report import StageReport
from cortex.flows.surfaces import show_briefs
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.tables import INDEX_TEXT, VECTOR
from cortex.transforms.audit import (
    TEXTS,
    Breach,
    archive_breaches,
    brief_breaches,
    edges_breaches,
    loss_breaches,
    memories_breaches,
    passages_breaches,
)
from cortex.transforms.consolidate import propose, wanted
from cortex.transforms.identity import content_id
from cortex.transforms.lifecycle import age
from cortex.transforms.link import link as links_between
from cortex.transforms.metrics import session_metrics
from cortex.transforms.review import settled_edges
from cortex.transforms.schemas import EDGES, EVENTS, MEMORIES, METRICS, TURNS, VECTORS, values
from cortex.transforms.search import embedded_text, index_text, passages_of
from cortex.transforms.told import fingerprints_of

# Vectors committed together: at some 140 texts a second, a kill loses at most 15 s of work.
EMBEDDED_AT_ONCE = 2_048


def embed(run: Run) -> None:
    """Give every memory and every passage of prose a vector, once per text; index the passages."""
    with run.report.stage("embed") as row:
        forgotten = run.store.journal.forgotten_turns()
        for scope in run.scopes():
            made_from = content_id(run.inputs(scope), run.model, *forgotten)
            if run.has_made("embed", scope, made_from):
                continue
            passages = _passages(run, scope, forgotten)
            _embed_missing(run, _texts(run.memories(scope)) | _texts(_newest(run, passages)), row)
            if not run.passes(scope, passages.num_rows, partial(passages_breaches, passages, scope)):
                continue
            rows = _searchable(passages, run.vectors())
            row.rows_out += run.store.tables.replace(scope, "passages", rows)
            run.made("embed", scope, made_from)
        row.note = run.model or "no model: keyword search only"
        if run.lacks_vectors:
            row.note += " gave no answer; the next run asks again"


def link(run: Run) -> None:
    """Compare the memories of each scope with their neighbours and keep the edges."""
    with run.report.stage("link") as row:
        for scope in run.scopes():
            made_from = content_id(run.inputs(scope), run.model)
            if run.has_made("link", scope, made_from):
                continue
            memories = run.memories(scope)
            edges = links_between(memories, run.vectors(), run.policy, run.model)
            edges = settled_edges(edges, run.journal_in_one(scope))
            if not run.passes(scope, edges.num_rows, partial(edges_breaches, edges, memories)):
                continue
            row.rows_in += memories.num_rows
            row.rows_out += run.store.tables.replace(scope, "edges", edges)
            run.made("link", scope, made_from)


def decay(run: Run) -> None:
    """Age the memories of each scope to today, rank them, and keep them."""
    with run.report.stage("decay") as row:
        for scope in run.scopes():
            made_from = content_id(run.inputs(scope), run.model, run.day.isoformat())
            if run.has_made("decay", scope, made_from):
                continue
            edges = run.store.tables.open(scope, "edges").read()
            memories = age(run.memories(scope), edges, run.policy, run.day)
            if not run.passes(scope, memories.num_rows, partial(_memories_breaches, run, scope, memories)):
                continue
            row.rows_in += memories.num_rows
            row.rows_out += run.store.tables.replace(scope, "memories", _searchable(memories, run.vectors()))
            run.made("made_by", scope, run.makers(scope))
            run.made("decay", scope, made_from)


def _memories_breaches(run: Run, scope: str, memories: pa.Table) -> list[Breach]:
    """Return what is wrong with memories about to be shown; a loss only where nothing explains it."""
    live = run.store.tables.open(scope, "memories").read(["memory_id", *TEXTS["memories"]])
    breaches = memories_breaches(memories, live, scope, run.policy)
    is_same_maker = run.store.lake.manifest.stages.get(f"made_by:{scope}") == run.makers(scope)
    is_erased = scope in json.loads(run.store.lake.manifest.stages.get(TO_WIPE, "[]"))
    if is_same_maker and not is_erased:
        breaches += loss_breaches(memories, live, scope, run.policy)
    return breaches


def consolidate(run: Run) -> None:
    """Merge what says the same, where enough has come together since the last time (spec 9.1)."""
    _consolidate(run, forced=False)


def consolidate_all(run: Run) -> None:
    """Merge what says the same in every scope."""
    _consolidate(run, forced=True)


def _consolidate(run: Run, forced: bool) -> None:
    merged = 0
    with run.report.stage("consolidate") as row:
        for scope in run.scopes():
            made_from = content_id(run.inputs(scope), run.model)
            if run.has_made("consolidate", scope, made_from):
                continue
            memories = run.store.tables.open(scope, "memories").read()
            if not forced and not wanted(memories, _extractions_since(run, scope), run.policy):
                continue
            told = run.journal_in_one(scope)
            merges = propose(memories, run.vectors(), run.policy, run.model, run.now, undone=told)
            row.rows_in += memories.num_rows
            row.rows_out += merges.num_rows
            merged += merges.num_rows
            # One commit: a kill in between would let the next run merge what was merged just now.
            entries = values(merges, "entry_id")
            run.store.journal.commit(
                merges,
                {
                    f"consolidate:{scope}": content_id(run.inputs(scope, also=entries), run.model),
                    f"consolidated_sessions:{scope}": str(_sessions(run, scope)),
                },
            )
        row.note = f"{merged} merges"
    if merged:
        for stage in (embed, link, decay):
            stage(run)


def render(run: Run) -> None:
    """Publish each project's brief and hook index, the hooks' project map and the DuckDB file."""
    with run.report.stage("render") as row:
        run.store.lake.join_small_files()
        published, scopes = run.store.published, run.scopes()
        state = {scope: content_id(run.inputs(scope), run.model, run.day.isoformat()) for scope in scopes}
        for scope in scopes:
            made_from = brief_made_from(run, scope)
            if scope == GLOBAL_SCOPE or run.has_made("render", scope, made_from):
                continue
            brief, archive = brief_of(run, scope), archive_of(run, scope)
            audit = partial(brief_breaches, brief, scope, run.policy, run.brief_tokens(scope))
            secrets = partial(archive_breaches, archive, scope)
            if not (run.passes(scope, 1, audit) and run.passes(scope, 1, secrets)):
                continue
            told = fingerprints_of(brief) | fingerprints_of(archive)
            run.store.telling.tell(scope, told, run.now)  # before: told is told
            row.rows_out += published.publish_brief(scope, brief)
            row.rows_out += published.publish_archive(scope, archive)
            row.rows_out += publish_notes(run, scope)
            run.made("render", scope, made_from)
        published.publish_projects(run.store.projects.paths())
        row.note = "; ".join(show_briefs(run))
        drop_merged(run)
        merged = run.store.projects.merged()
        everything = content_id(*state.values(), *sorted(run.store.lake.manifest.files), *merged)
        if not (published.database_path.is_file() and run.has_made("publish", "all", everything)):
            published.publish_database(
                run.store.lake, _all(run, "memories"), _all(run, "edges"), _metrics(run), merged
            )
            published.publish_counts({scope: _active(run, scope) for scope in scopes})
            run.made("publish", "all", everything)
        run.store.lake.sweep()


def _active(run: Run, scope: str) -> int:
    return run.store.tables.open(scope, "memories").read(["memory_id"], "status = 'active'").num_rows


def _metrics(run: Run) -> pa.Table:
    """Return METRICS of every session."""
    rows = [METRICS.empty()]
    for scope in run.scopes():
        if scope != GLOBAL_SCOPE:
            said = [run.store.lake.read(EVENTS, part) for part in run.parts(scope)]
            rows.append(session_metrics(run.turns(scope), pa.concat_tables(said), run.policy))
    return pa.concat_tables(rows)


def _all(run: Run, name: str) -> pa.Table:
    empty = (MEMORIES if name == "memories" else EDGES).empty()
    return pa.concat_tables(
        [empty, *(run.store.tables.open(s, name).read().cast(empty.schema) for s in run.scopes())]
    )


def _passages(run: Run, scope: str, forgotten: list[str]) -> pa.Table:
    """Return the PASSAGES of a project's prose; those that a forgotten memory rested on are left out."""
    if scope == GLOBAL_SCOPE:
        return passages_of(TURNS.empty(), run.policy)
    passages = passages_of(run.turns(scope), run.policy)
    if not forgotten:
        return passages
    return passages.filter(pa.compute.invert(pa.compute.is_in(passages["turn_id"], pa.array(forgotten))))


def _newest(run: Run, passages: pa.Table) -> pa.Table:
    limit = int(run.policy.threshold("embedded_passages_per_project"))
    return passages.sort_by([("said_at", "descending"), ("passage_id", "ascending")]).slice(0, limit)


def _texts(rows: pa.Table) -> dict[str, str]:
    """Return content hash → text to embed; rows of nothing but code have none."""
    texts = {row["content_hash"]: embedded_text(row) for row in rows.to_pylist()}
    return {name: text for name, text in texts.items() if text}


def _embed_missing(run: Run, texts: dict[str, str], row: StageReport) -> None:
    if run.embedder is None or run.lacks_vectors:
        return
    known = set(run.vectors()["content_hash"].to_pylist())
    missing = sorted(name for name in texts if name not in known)
    row.rows_in += len(missing)
    for start in range(0, len(missing), EMBEDDED_AT_ONCE):
        names = missing[start : start + EMBEDDED_AT_ONCE]
        try:
            vectors = run.embedder.embed([texts[name] for name in names])
        except ModelUnavailable:
            run.lacks_vectors = True
            return
        rows = [
            {"model": run.model, "content_hash": n, "vector": v} for n, v in zip(names, vectors, strict=True)
        ]
        with run.store.lake.change() as change:
            change.append(VECTORS, run.model, VECTORS.of(rows))
        run.progress("embed", start + len(names), len(missing))


def _searchable(rows: pa.Table, vectors: pa.Table) -> pa.Table:
    """Return `rows` with what search needs: `index_text`, and `vector` where the model gave vectors."""
    texts = pa.array([index_text(row) for row in rows.to_pylist()], pa.string())
    rows = rows.append_column(INDEX_TEXT, texts)
    if not vectors.num_rows:
        return rows
    position = {name: at for at, name in enumerate(vectors["content_hash"].to_pylist())}
    taken = pa.array([position.get(name) for name in rows["content_hash"].to_pylist()], pa.int64())
    dimensions = len(vectors["vector"][0])
    kind = pa.list_(pa.float32(), dimensions)
    return rows.append_column(VECTOR, vectors["vector"].combine_chunks().cast(kind).take(taken))


def _extractions_since(run: Run, scope: str) -> int:
    return _sessions(run, scope) - int(
        run.store.lake.manifest.stages.get(f"consolidated_sessions:{scope}", "0")
    )


def _sessions(run: Run, scope: str) -> int:
    parts = [run.store.lake.read(EVENTS, part, columns=["session_id"]) for part in run.parts(scope)]
    return len({name for rows in parts for name in values(rows, "session_id")})


INGEST = (erase, extract, embed, link, decay, consolidate, render, wipe)
NIGHTLY = (retire, erase, extract, embed, link, decay, consolidate_all, render, wipe)
# After a person told something: what waits in staging stays there.
TOLD = (erase, embed, link, decay, render, wipe)
# After a person wanted something forgotten: kept transcripts that wait hold it too, until they are read.
FORGET = (erase, extract, embed, link, decay, render, wipe)
CONSOLIDATE = (erase, embed, link, decay, consolidate_all, render, wipe)
