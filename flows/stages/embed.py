"""The stages that embed: vectors of memories, then of passages, from the hosted model or its stand-in."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.run_report import StageReport
from cortex.flows.embedders import Embedder
from cortex.flows.publishing.passages import (
    Cutting,
    cut_since,
    passages_in,
    with_cut,
)
from cortex.flows.reading.sharding import vectors_of
from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage
from cortex.storage.tables.tables import (
    HAS_VECTOR,
    INDEX_TEXT,
    Dataset,
    with_vectors,
)
from cortex.transforms.audit import passages_violations
from cortex.transforms.errors import FileDamaged, ModelUnavailable
from cortex.transforms.schemas import PASSAGES, VECTORS, values
from cortex.transforms.search.index_text import INDEXED_COLUMNS, embedded_text, index_text

# Vectors committed together: at about 140 texts a second, a kill loses at most 15 s of work.
EMBEDDED_AT_ONCE = 2_048
# Texts between two steps of a progress bar: one to five seconds.
STEP_TEXTS = 128
# A scope that lacks more vectors than this (2 s of work) is searchable by words before the model begins.
FILLED_BEHIND = 256
# Rows that one filter names: a longer list makes its expression too deep.
NAMED_AT_ONCE = 1_000
# What the hosted model is asked if nothing is missing, to see whether it answers again.
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


@stage(reads="turns events journal vectors passages", writes="vectors passages")
def embed(run: Run) -> None:
    """
    Give every memory and every passage of prose a vector, once per text; index the passages.

    Where many vectors are missing, the passages can be found by words first. If the hosted model fails,
    the local one makes or has the vectors of all of them: those of two models are not comparable. Without it
    what has no vector is found by words, and the next run asks again.
    """
    with run.report.stage("embed") as row:
        _give_up_damaged(run)
        _until_answered(run, lambda: _embed_all(run, row))
        row.note = _note_of(run)


def _until_answered(run: Run, work: Callable[[], None]) -> None:
    """Do the work with the model in use; if that fails with the local one, and then with none."""
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


@stage(reads="events journal vectors passages", writes="vectors")
def embed_spare(run: Run) -> None:
    """Keep the local model's vectors complete along with the hosted model's, in case that one fails."""
    spare = run.embedding.spare()
    if spare is None or run.embedding.lacks_vectors:
        return
    with run.report.stage("embed_spare") as row:
        forgotten = run.store.journal.forgotten_turns()
        for scope in run.readings.scopes():
            inputs = run.fingerprints.indexed(scope, forgotten, spare.model)
            if not run.ledger.has_made("embed_spare", scope, inputs):
                passages = _newest_of(run, run.store.tables.open(scope, "passages").read())
                _embed_missing(run, spare, _texts_of(run, scope, spare, passages), row)
                run.ledger.note_output("embed_spare", scope, inputs)
        row.note = f"{spare.model}, should {run.embedding.model} fail"


def _embed_memories(run: Run, row: StageReport) -> None:
    if run.embedding.lacks_vectors:
        return
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "embed"):
            if not run.ledger.has_made("link", scope, run.fingerprints.linked(scope)):
                _embed_missing(
                    run, run.embedding.embedder, _texts_of(run, scope, run.embedding.embedder), row
                )


def _embed_all(run: Run, row: StageReport) -> None:
    forgotten, before = run.store.journal.forgotten_turns(), row.rows_in
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "embed"):
            inputs = run.fingerprints.indexed(scope, forgotten, run.embedding.model)
            if run.ledger.has_made("embed", scope, inputs):
                continue
            cutting = cut_since(run, scope, forgotten)
            audit = partial(passages_violations, cutting.rows, scope)
            if not run.outcome.passes(scope, cutting.rows.num_rows, audit):
                continue
            embedder = None if run.embedding.lacks_vectors else run.embedding.embedder
            if embedder is not None:
                texts = _texts_of(run, scope, embedder, _newest(run, scope, cutting))
                if len(texts) > FILLED_BEHIND:
                    _write(run, scope, cutting, forgotten)
                _embed_missing(run, embedder, texts, row)
            row.rows_out += _write(run, scope, cutting, forgotten)
            run.ledger.note_output("embed", scope, inputs, with_cut(run, scope, forgotten, inputs))
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


def _write(run: Run, scope: str, cutting: Cutting, forgotten: list[str]) -> int:
    """Write what was cut, and the vectors that came meanwhile; return how many rows changed."""
    tables, vectors = run.store.tables, run.readings.vectors()
    if cutting.transcripts is not None:
        late = _given_vectors(tables.open(scope, "passages"), vectors, cutting)
        rows = pa.concat_tables([cutting.rows, late])
        if not rows.num_rows and not cutting.transcripts:
            return 0
        where = {"file": sorted(cutting.transcripts)}
        changed = tables.update(scope, "passages", searchable(rows, vectors), where)
        if changed is not None:
            return changed
        cutting = Cutting(passages_in(run, scope, forgotten))
    return tables.replace(scope, "passages", searchable(cutting.rows, vectors))


def _given_vectors(table: Dataset, vectors: pa.Table, cutting: Cutting) -> pa.Table:
    """Return the other rows of a table of passages that have a vector now and had none."""
    rows = table.read(["passage_id", "content_hash", HAS_VECTOR])
    if HAS_VECTOR not in rows.schema.names:
        return PASSAGES.empty()
    lacking = rows.filter(pc.invert(rows[HAS_VECTOR]))
    late = lacking.filter(_is_known(lacking, vectors))
    again = set(values(cutting.rows, "passage_id"))
    return _rows_of(table, [name for name in values(late, "passage_id") if name not in again])


def _rows_of(table: Dataset, names: list[str]) -> pa.Table:
    """Return the PASSAGES of these ids."""
    steps = range(0, len(names), NAMED_AT_ONCE)
    pieces = [table.read(where={"passage_id": names[at : at + NAMED_AT_ONCE]}) for at in steps]
    return pa.concat_tables([PASSAGES.empty(), *(piece.cast(PASSAGES.arrow) for piece in pieces)])


def _texts_of(
    run: Run, scope: str, embedder: Embedder | None, passages: pa.Table | None = None
) -> dict[str, str]:
    """Return content hash → text of what the model has no vector for: memories of a scope, and passages."""
    if embedder is None:
        return {}
    vectors = run.readings.vectors(embedder.model)
    texts: dict[str, str] = {}
    for rows in (run.readings.memories(scope), *([] if passages is None else [passages])):
        texts |= _texts(rows.filter(pc.invert(_is_known(rows, vectors))))
    return texts


def _is_known(rows: pa.Table, vectors: pa.Table) -> Any:
    """Return of each row whether its text has one of `vectors`."""
    return pc.is_in(rows["content_hash"], vectors["content_hash"].combine_chunks())


def _newest(run: Run, scope: str, cutting: Cutting) -> pa.Table:
    """Return the newest PASSAGES of a project, as many as are embedded, as far as they may lack a vector."""
    columns, table = ["passage_id", "said_at", "content_hash"], run.store.tables.open(scope, "passages")
    known = table.read([*columns, "file"]) if cutting.transcripts is not None else PASSAGES.empty()
    is_cut = pc.is_in(known["file"], pa.array(sorted(cutting.transcripts or ()), pa.string()))
    is_cut = pc.or_(is_cut, pc.is_in(known["passage_id"], cutting.rows["passage_id"].combine_chunks()))
    rows = pa.concat_tables([cutting.rows.select(columns), known.filter(pc.invert(is_cut)).select(columns)])
    newest = _newest_of(run, rows)
    is_lacking = pc.invert(_is_known(newest, run.readings.vectors()))
    lacking = newest.filter(is_lacking)["passage_id"]
    cut = cutting.rows.filter(pc.is_in(cutting.rows["passage_id"], lacking.combine_chunks()))
    again = set(values(cut, "passage_id"))
    others = [name for name in values(newest.filter(is_lacking), "passage_id") if name not in again]
    return pa.concat_tables([cut, _rows_of(table, others)])


def _newest_of(run: Run, passages: pa.Table) -> pa.Table:
    limit = int(run.policy.threshold("embedded_passages_per_project"))
    return passages.sort_by([("said_at", "descending"), ("passage_id", "ascending")]).slice(0, limit)


def _texts(rows: pa.Table) -> dict[str, str]:
    """Return content hash → text to embed; rows of nothing but code have none."""
    texts = {row["content_hash"]: embedded_text(row) for row in rows.to_pylist()}
    return {name: text for name, text in texts.items() if text}


def _embed_missing(run: Run, embedder: Embedder | None, texts: dict[str, str], row: StageReport) -> None:
    """Commit the vectors of `texts`, for which `embedder` has none. Raises ModelUnavailable."""
    if embedder is None:
        return
    # A batch is as long as its longest text: sorted, 1,608 passages are padded by 4 % and not by 8.
    missing = sorted(texts, key=lambda name: (len(texts[name]), name))
    lists = [missing[at : at + STEP_TEXTS] for at in range(0, len(missing), STEP_TEXTS)]
    vectors_by_list = vectors_of(run.carrier, embedder, [[texts[name] for name in names] for names in lists])
    rows, done = [], 0
    for names, vectors in zip(lists, vectors_by_list, strict=True):
        rows += [
            {"model": embedder.model, "content_hash": n, "vector": v}
            for n, v in zip(names, vectors, strict=True)
        ]
        done += len(names)
        run.progress("embed", done, len(missing))
        if len(rows) >= EMBEDDED_AT_ONCE or done == len(missing):
            with run.store.lake.change() as change:
                change.append(VECTORS, embedder.model, VECTORS.of(rows))
            row.rows_in += len(rows)
            rows = []


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
    return with_vectors(rows, vectors)


def _indexed(rows: pa.Table) -> list[str]:
    return [name for name in INDEXED_COLUMNS if name in rows.schema.names]
