"""The stages that embed: vectors of memories, then of passages, from the hosted model or its stand-in."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embedders import Embedder
from cortex.flows.report import StageReport
from cortex.flows.run import Run
from cortex.flows.stages.stage import stage
from cortex.storage.tables import INDEX_TEXT, VECTOR
from cortex.transforms.audit import passages_violations
from cortex.transforms.errors import FileDamaged, ModelUnavailable
from cortex.transforms.schemas import GLOBAL_SCOPE, TURNS, VECTORS
from cortex.transforms.search.index_text import INDEXED_COLUMNS, embedded_text, index_text, passages_of

# Vectors committed together: at about 140 texts a second, a kill loses at most 15 s of work.
EMBEDDED_AT_ONCE = 2_048
# Texts between two steps of a progress bar: one to five seconds.
STEP_TEXTS = 128
# A scope that lacks more vectors than this (2 s of work) is searchable by words before the model begins.
FILLED_BEHIND = 256
# What the hosted model is asked where nothing is missing, to see whether it answers again.
PROBE = "Does it answer?"


@stage(reads="turns events journal vectors", writes="vectors")
def embed_memories(run: Run) -> None:
    """
    Give a vector to the memories that edges and briefs are about to be made of, and to no passage.

    There are ten times as many passages, and no brief needs them: they come behind it.
    """
    with run.report.stage("embed") as row:
        _give_up_damaged(run)
        _until_answered(run, lambda: _embed_memories(run, row))


@stage(reads="turns events journal vectors", writes="vectors passages")
def embed(run: Run) -> None:
    """
    Give every memory and every passage of prose a vector, once per text; index the passages.

    Where many vectors are missing, the passages can be found by words first. Where the hosted model fails,
    the local one makes or has the vectors of all of them: those of two models are not comparable. Without it
    what has no vector is found by words, and the next run asks again.
    """
    with run.report.stage("embed") as row:
        _give_up_damaged(run)
        _until_answered(run, lambda: _embed_all(run, row))
        row.note = _note_of(run)


def _until_answered(run: Run, work: Callable[[], None]) -> None:
    """Do the work with the model in use; where that fails with the local one, and then with none."""
    is_done = False
    while not is_done:
        try:
            work()
            is_done = True
        except ModelUnavailable as error:
            run.embedding.fall_back(error, run.store.home, run.now)


def _give_up_damaged(run: Run) -> None:
    """Drop vectors that cannot be read: what lacks one gets it again."""
    try:
        run.readings.vectors()
    except FileDamaged as error:
        run.store.lake.drop_unreadable(VECTORS, run.embedding.model)
        run.report.note(f"{error.problem} They were made again.")


@stage(reads="turns events journal vectors", writes="vectors")
def embed_spare(run: Run) -> None:
    """Keep the local model's vectors complete beside the hosted one's, for the day that one fails."""
    spare = run.embedding.spare()
    if spare is None or run.embedding.lacks_vectors:
        return
    with run.report.stage("embed_spare") as row:
        forgotten = run.store.journal.forgotten_turns()
        for scope in run.readings.scopes():
            inputs = run.fingerprints.indexed(scope, forgotten, spare.model)
            if not run.ledger.has_made("embed_spare", scope, inputs):
                _embed_missing(run, spare, _texts_of(run, scope, forgotten), row)
                run.ledger.note_output("embed_spare", scope, inputs)
        row.note = f"{spare.model}, should {run.embedding.model} fail"


def _embed_memories(run: Run, row: StageReport) -> None:
    if run.embedding.lacks_vectors:
        return
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "embed"):
            if not run.ledger.has_made("link", scope, run.fingerprints.linked(scope)):
                _embed_missing(run, run.embedding.embedder, _texts(run.readings.memories(scope)), row)


def _embed_all(run: Run, row: StageReport) -> None:
    forgotten, before = run.store.journal.forgotten_turns(), row.rows_in
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "embed"):
            inputs = run.fingerprints.indexed(scope, forgotten, run.embedding.model)
            if run.ledger.has_made("embed", scope, inputs):
                continue
            passages = passages_in(run, scope, forgotten)
            audit = partial(passages_violations, passages, scope)
            if not run.outcome.passes(scope, passages.num_rows, audit):
                continue
            if not run.embedding.lacks_vectors:
                texts = _texts_of(run, scope, forgotten)
                if len(_missing(run, run.embedding.embedder, texts)) > FILLED_BEHIND:
                    run.store.tables.replace(scope, "passages", searchable(passages, run.readings.vectors()))
                _embed_missing(run, run.embedding.embedder, texts, row)
            rows = searchable(passages, run.readings.vectors())
            row.rows_out += run.store.tables.replace(scope, "passages", rows)
            run.ledger.note_output("embed", scope, inputs)
    if run.embedding.embedder is not None and not run.embedding.lacks_vectors:
        if row.rows_in == before and run.embedding.is_doubted and run.embedding.failure is None:
            run.embedding.embedder.embed([PROBE])
        run.embedding.trust(run.store.home)


def _note_of(run: Run) -> str:
    note = run.embedding.model or "no model: keyword search only"
    if run.embedding.lacks_vectors:
        return f"{note} gave no answer; the next run asks again"
    return (
        f"{note}, in the place of {run.embedding.failure.model}: {run.embedding.failure.reason}"
        if run.embedding.failure
        else note
    )


def _texts_of(run: Run, scope: str, forgotten: list[str]) -> dict[str, str]:
    """Return content hash → text of all that is embedded in a scope."""
    return _texts(run.readings.memories(scope)) | _texts(_newest(run, passages_in(run, scope, forgotten)))


def passages_in(run: Run, scope: str, forgotten: list[str]) -> pa.Table:
    """Return the PASSAGES of a project's prose; those that a forgotten memory rested on are left out."""
    if scope == GLOBAL_SCOPE:
        return passages_of(TURNS.empty(), run.policy)
    passages = passages_of(run.readings.turns(scope), run.policy)
    if not forgotten:
        return passages
    return passages.filter(pc.invert(pc.is_in(passages["turn_id"], pa.array(forgotten))))


def _newest(run: Run, passages: pa.Table) -> pa.Table:
    limit = int(run.policy.threshold("embedded_passages_per_project"))
    return passages.sort_by([("said_at", "descending"), ("passage_id", "ascending")]).slice(0, limit)


def _texts(rows: pa.Table) -> dict[str, str]:
    """Return content hash → text to embed; rows of nothing but code have none."""
    texts = {row["content_hash"]: embedded_text(row) for row in rows.to_pylist()}
    return {name: text for name, text in texts.items() if text}


def _embed_missing(run: Run, embedder: Embedder | None, texts: dict[str, str], row: StageReport) -> None:
    """Commit the vectors of what `embedder` has none for. Raises ModelUnavailable."""
    if embedder is None:
        return
    missing = _missing(run, embedder, texts)
    for start in range(0, len(missing), EMBEDDED_AT_ONCE):
        rows = []
        for at in range(start, min(start + EMBEDDED_AT_ONCE, len(missing)), STEP_TEXTS):
            names = missing[at : min(at + STEP_TEXTS, start + EMBEDDED_AT_ONCE)]
            vectors = embedder.embed([texts[name] for name in names])
            rows += [
                {"model": embedder.model, "content_hash": n, "vector": v}
                for n, v in zip(names, vectors, strict=True)
            ]
            run.progress("embed", at + len(names), len(missing))
        with run.store.lake.change() as change:
            change.append(VECTORS, embedder.model, VECTORS.of(rows))
        row.rows_in += len(rows)


def _missing(run: Run, embedder: Embedder | None, texts: dict[str, str]) -> list[str]:
    """Return the content hashes of `texts` that the model has no vector for, the shortest texts first."""
    if embedder is None:
        return []
    known = set(run.readings.vectors(embedder.model)["content_hash"].to_pylist())
    # A batch is as long as its longest text: sorted, 1,608 passages are padded by 4 % and not by 8.
    return sorted((name for name in texts if name not in known), key=lambda name: (len(texts[name]), name))


def searchable(rows: pa.Table, vectors: pa.Table, texts: pa.Table | None = None) -> pa.Table:
    """
    Return `rows` with what search needs: `index_text`, and `vector` where the model gave vectors.

    `texts` are (memory_id, index_text) as they were made of the same memories before.
    """
    if texts is not None and texts["memory_id"].equals(rows["memory_id"]):
        rows = rows.append_column(INDEX_TEXT, texts[INDEX_TEXT])
    else:
        worded = [index_text(row) for row in rows.select(_indexed(rows)).to_pylist()]
        rows = rows.append_column(INDEX_TEXT, pa.array(worded, pa.string()))
    if not vectors.num_rows:
        return rows
    position = {name: at for at, name in enumerate(vectors["content_hash"].to_pylist())}
    taken = pa.array([position.get(name) for name in rows["content_hash"].to_pylist()], pa.int64())
    dimensions = len(vectors["vector"][0])
    kind = pa.list_(pa.float32(), dimensions)
    return rows.append_column(VECTOR, vectors["vector"].combine_chunks().cast(kind).take(taken))


def _indexed(rows: pa.Table) -> list[str]:
    return [name for name in INDEXED_COLUMNS if name in rows.schema.names]
