"""A backfill publishes briefs before passages are embedded; killed there, the next run fills them in."""

import pytest

from cortex.flows.engines import runs
from cortex.flows.operations.edit.apply import apply_now
from cortex.flows.stages import embed
from cortex.flows.stages.order import APPLY, INGEST
from cortex.storage.tables.tables import HAS_VECTOR
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import GLOBAL_SCOPE, VECTORS, values
from tests.bench import NOW, Bench, WordEmbedder, contents, difference, leftovers
from tests.rows import entry
from tests.transcripts import decisions


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def bench(home, tmp_path) -> Bench:
    decisions("s1").write(tmp_path / "projects")
    decisions("s2", cwd="/home/dev/reef").write(tmp_path / "projects")
    return Bench(home, tmp_path / "projects")


def hashes_in(bench: Bench) -> list[str]:
    return values(bench.store.lake.read(VECTORS, WordEmbedder.model), "content_hash")


def vectors_in(bench: Bench) -> int:
    return len(hashes_in(bench))


def passages_in(bench: Bench) -> list[dict[str, object]]:
    tables = [bench.store.tables.open(scope, "passages") for scope in bench.store.tables.scopes()]
    return [row for table in tables for row in table.read(["text", HAS_VECTOR]).to_pylist()]


def test_the_briefs_are_there_before_a_passage_has_a_vector(bench):
    seen: dict[str, object] = {}

    def look(stage: str, done: int, total: int) -> None:
        if stage == "brief" and not seen:
            scopes = bench.store.tables.scopes()
            briefs = [bench.store.published.brief(scope) for scope in scopes if scope != "global"]
            seen.update(briefs=briefs, vectors=vectors_in(bench), passages=passages_in(bench))

    bench.stage()
    runs.execute("backfill", bench.context, progress=look)
    assert len(seen["briefs"]) == 2 and all("## " in brief for brief in seen["briefs"])
    memories = {row["content_hash"] for name in ("kelp", "reef") for row in bench.memories(name)}
    assert seen["passages"] == [] and seen["vectors"] == len(memories)
    # A command alone is found by its words.
    worded = [row for row in passages_in(bench) if not str(row["text"]).startswith("`")]
    assert vectors_in(bench) > len(memories) and all(row[HAS_VECTOR] for row in worded)


def test_killed_while_search_by_meaning_fills_up_the_next_run_gives_the_same_store(
    bench, tmp_path, monkeypatch
):
    undisturbed = Bench(tmp_path / "undisturbed", bench.projects)
    undisturbed.backfill()
    monkeypatch.setattr(embed, "FILLED_BEHIND", 0)
    monkeypatch.setattr(embed, "STEP_TEXTS", 1)
    monkeypatch.setattr(embed, "EMBEDDED_AT_ONCE", 1)
    is_shown = []

    def kill(stage: str, done: int, total: int) -> None:
        is_shown.extend([stage] if stage == "brief" or (is_shown and stage == "embed") else [])
        if is_shown[1:] == ["embed", "embed"]:
            raise Killed

    monkeypatch.setitem(runs.FLOWS, "backfill", INGEST)
    bench.stage()
    with pytest.raises(Killed):
        runs.execute("backfill", bench.context, progress=kill)
    assert bench.store.published.database_path.is_file()  # for those who look meanwhile
    found_by_words = [row for row in passages_in(bench) if not row[HAS_VECTOR]]
    assert found_by_words  # while their vectors are still to come
    bench.run(now=NOW)
    assert difference(contents(undisturbed.home), contents(bench.home)) == {}
    assert leftovers(bench.home) == []


def test_reading_is_shown_in_bytes_up_to_the_last_one(bench):
    steps: list[tuple[int, int]] = []

    def note(stage: str, done: int, total: int) -> None:
        steps.extend([(done, total)] if stage == "extract" else [])

    bench.stage()
    runs.execute("backfill", bench.context, progress=note)
    size = sum(path.stat().st_size for path in bench.projects.rglob("*.jsonl"))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {total for _, total in steps} == {size} and steps[-1][0] == size
    assert steps[0][0] < size / 2  # a bar that begins full says nothing


def test_a_person_who_remembers_something_waits_for_no_passages(bench, monkeypatch):
    monkeypatch.setattr(embed, "FILLED_BEHIND", 0)
    monkeypatch.setattr(embed, "STEP_TEXTS", 1)
    monkeypatch.setattr(embed, "EMBEDDED_AT_ONCE", 1)
    is_shown = []

    def kill(stage: str, done: int, total: int) -> None:
        is_shown.extend([stage] if stage == "brief" or (is_shown and stage == "embed") else [])
        if is_shown[1:] == ["embed", "embed"]:
            raise Killed

    bench.stage()
    with pytest.raises(Killed):
        runs.execute("backfill", bench.context, progress=kill)
    vectors = vectors_in(bench)
    fact = {"text": "The slipway is greased on Mondays.", "memory_type": "pattern", "category": "global"}
    name = memory_id(GLOBAL_SCOPE, "pattern", str(fact["text"]))
    bench.store.journal.write(entry("remember", GLOBAL_SCOPE, fact, recorded_at=NOW, memory_id=name))
    assert apply_now(bench.context, APPLY).is_in_effect
    [kept] = bench.memories(GLOBAL_SCOPE)
    assert kept["text"] == fact["text"] and kept["content_hash"] in hashes_in(bench)
    assert vectors_in(bench) == vectors + 1
    assert not all(row[HAS_VECTOR] for row in passages_in(bench))
    bench.run(now=NOW)
    worded = [row for row in passages_in(bench) if not str(row["text"]).startswith("`")]
    assert all(row[HAS_VECTOR] for row in worded)
