"""The stages that embed: vectors of memories, then of passages."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.passages import Cutting, cut_since, passages_in, with_cut
from cortex.flows.reading.shards import vectors_of
from cortex.flows.run.run import Run, stage
from cortex.flows.run_report import StageReport
from cortex.storage.tables.tables import HAS_VECTOR, INDEX_TEXT, Dataset, with_vectors
from cortex.transforms.audit import passages_violations
from cortex.transforms.errors import FileDamaged, ModelUnavailable
from cortex.transforms.memory.link import same_before
from cortex.transforms.schemas import PASSAGES, VECTORS, values
from cortex.transforms.search import INDEXED_COLUMNS, embedded_text, index_text

# Vectors committed together: at about 140 texts a second, a kill loses at most 15 s of work.
EMBEDDED_AT_ONCE = 2_048
# Texts between two steps of a progress bar: one to five seconds.
STEP_TEXTS = 128
# A scope that lacks more vectors than this (2 s of work) is searchable by words before the model begins.
FILLED_BEHIND = 256
# Of the run in which a person's command takes effect.
COMMAND_FLOW = "remember"
# Cut passages of all scopes that are kept while they are counted, about 30 MB; of more they are cut again.
KEPT_ROWS = 50_000
# The model sees 256 word pieces, about this many characters; a text of one word costs like MIN_WEIGHT.
SEEN_CHARS = 1_000
MIN_WEIGHT = 50
# Rows that one filter names: a longer list makes its expression too deep.
NAMED_AT_ONCE = 1_000


@stage(reads="turns events journal vectors", writes="vectors")
def embed_memories(run: Run) -> None:
    """
    Give a vector to the memories that edges and briefs are about to be made of, and to no passage.

    There are ten times as many passages, and no brief needs them: they come behind it.
    """
    with run.report.stage("embed") as row:
        _give_up_damaged(run)
        due = [
            scope
            for scope in run.readings.scopes()
            if not run.ledger.has_made("link", scope, run.fingerprints.linked(scope))
        ]
        amount = _Amount(run, "embed_memories")
        for scope in due:
            with run.outcome.isolated(scope, "embed"):
                amount.expect(_texts_of(run, scope))
        for scope in due:
            with run.outcome.isolated(scope, "embed"):
                _fill(run, scope, _texts_of(run, scope), row, amount)


@stage(reads="turns events journal vectors passages", writes="vectors passages")
def embed(run: Run) -> None:
    """
    Give every memory and every passage of prose a vector, once per text; index the passages.

    Where many vectors are missing, the passages can be found by words first; a person's command does not
    wait for them, the next run fills them in. If the model gives no answer, what has no vector is found by
    words alone, and the next run asks again.
    """
    with run.report.stage("embed") as row:
        _give_up_damaged(run)
        forgotten = run.store.journal.forgotten_turns()
        cuttings, amount = _cut(run, forgotten)
        for scope in run.readings.scopes():
            with run.outcome.isolated(scope, "embed"):
                row.rows_out += _embed(run, scope, forgotten, row, cuttings.pop(scope, None), amount)
        model = run.embedding.model or "no model: keyword search only"
        row.note = (
            f"{model} gave no answer; the next run asks again" if run.embedding.is_unanswered else model
        )


def _give_up_damaged(run: Run) -> None:
    """Drop vectors that cannot be read: what lacks one gets it again."""
    try:
        run.readings.vectors()
    except FileDamaged as error:
        run.store.lake.drop_unreadable(VECTORS, run.embedding.model)
        # The same texts may get vectors that differ in their last digit: all of them are compared again.
        run.ledger.note(run.ledger.notes.without_outputs(["linked"], run.readings.scopes()))
        run.report.note(f"{error.problem} They were made again.")


class _Amount:
    """How much of the texts of all scopes is embedded, for one progress bar with one total."""

    def __init__(self, run: Run, step: str) -> None:
        self._show, self._step = run.progress, step
        self._expected: set[str] = set()
        self._done = self._total = 0

    def expect(self, texts: dict[str, str]) -> None:
        """Count texts that lack a vector; those of two scopes that are the same count once."""
        self._total += sum(_weight(text) for name, text in texts.items() if name not in self._expected)
        self._expected |= texts.keys()

    def add(self, texts: Iterable[str]) -> None:
        """Count texts as embedded."""
        self._done += sum(map(_weight, texts))
        self._show(self._step, min(self._done, self._total), self._total)


def _weight(text: str) -> int:
    """Return about how long a text takes: by its characters, of which the model sees the first ones."""
    return min(len(text), SEEN_CHARS) + MIN_WEIGHT


def _cut(run: Run, forgotten: list[str]) -> tuple[dict[str, Cutting], _Amount]:
    """Return what is new of each scope as far as KEPT_ROWS hold it, and how much there is to embed in all."""
    cuttings: dict[str, Cutting] = {}
    amount, kept = _Amount(run, "embed"), 0
    for scope in run.readings.scopes():
        with run.outcome.isolated(scope, "embed"):
            if run.ledger.has_made("embed", scope, run.fingerprints.indexed(scope, forgotten)):
                continue
            cutting = cut_since(run, scope, forgotten)
            if run.embedding.asked is not None:
                amount.expect(_texts_of(run, scope, _newest(run, scope, cutting)))
            kept += cutting.rows.num_rows
            if kept <= KEPT_ROWS:
                cuttings[scope] = cutting
    return cuttings, amount


def _embed(
    run: Run, scope: str, forgotten: list[str], row: StageReport, cutting: Cutting | None, amount: _Amount
) -> int:
    """Embed and index what is new of a scope; return how many rows of its index changed."""
    inputs = run.fingerprints.indexed(scope, forgotten)
    if run.ledger.has_made("embed", scope, inputs):
        return 0
    cutting = cutting or cut_since(run, scope, forgotten)
    audit = partial(passages_violations, cutting.rows, scope)
    if not run.outcome.passes(scope, cutting.rows.num_rows, audit):
        return 0
    if run.embedding.asked is not None:
        texts = _texts_of(run, scope, _newest(run, scope, cutting))
        is_left = len(texts) > FILLED_BEHIND and run.report.flow == COMMAND_FLOW
        if is_left:
            texts = _texts_of(run, scope)
        elif len(texts) > FILLED_BEHIND and not run.embedding.is_unanswered:
            _write(run, scope, cutting, forgotten)
        if not _fill(run, scope, texts, row, amount) or is_left:
            inputs = run.fingerprints.indexed(scope, forgotten, is_complete=False)
            if run.ledger.has_made("embed", scope, inputs):
                return 0
    changed = _write(run, scope, cutting, forgotten)
    run.ledger.note_output("embed", scope, inputs, with_cut(run, scope, forgotten, inputs))
    return changed


def _fill(run: Run, scope: str, texts: dict[str, str], row: StageReport, amount: _Amount) -> bool:
    """Commit the vectors of a scope's `texts`; return whether the model gave them."""
    try:
        _embed_missing(run, texts, row, amount)
    except ModelUnavailable:
        run.embedding.is_unanswered = True
        if _texts_of(run, scope):
            run.embedding.incomplete.add(scope)
        return False
    return True


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


def _texts_of(run: Run, scope: str, passages: pa.Table | None = None) -> dict[str, str]:
    """Return content hash → text of what the model has no vector for: memories of a scope, and passages."""
    if run.embedding.asked is None:
        return {}
    vectors = run.readings.vectors()
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


def _embed_missing(run: Run, texts: dict[str, str], row: StageReport, amount: _Amount) -> None:
    """Commit the vectors of `texts`, for which the model has none. Raises ModelUnavailable."""
    embedder = run.embedding.asked
    if embedder is None:
        return
    # Shortest first: the same order on every machine, and most texts early.
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
        amount.add(texts[name] for name in names)
        if len(rows) >= EMBEDDED_AT_ONCE or done == len(missing):
            with run.store.lake.change() as change:
                change.append(VECTORS, embedder.model, VECTORS.of(rows))
            row.rows_in += len(rows)
            rows = []


def searchable(rows: pa.Table, vectors: pa.Table, texts: pa.Table | None = None) -> pa.Table:
    """
    Return `rows` with what search needs: `index_text`, and `vector` where the model gave vectors.

    `texts` has the same memories as they were before, or others, with the words they were searched by:
    of what is worded the same they are not made again.
    """
    columns = _indexed(rows)
    if texts is None:
        worded = pa.array(map(index_text, rows.select(columns).to_pylist()), pa.string())
    else:
        position, is_same = same_before(rows, texts, columns)
        changed = rows.filter(pc.invert(is_same)).select(columns).to_pylist()
        known: Any = texts[INDEX_TEXT].take(position).combine_chunks()
        others = pa.array(map(index_text, changed), pa.string())
        worded = pc.replace_with_mask(known, pc.invert(is_same).combine_chunks(), others)
    return with_vectors(rows.append_column(INDEX_TEXT, worded), vectors)


def _indexed(rows: pa.Table) -> list[str]:
    return [name for name in INDEXED_COLUMNS if name in rows.schema.names]
