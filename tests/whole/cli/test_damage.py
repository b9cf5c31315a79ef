"""Claims about damaged stores: no traceback; what can be made again is, the rest is named."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cortex.storage.store import Store
from tests.bench import Bench, contents, difference
from tests.shell import Cortex
from tests.transcripts import decisions

Damage = Callable[[Path], object]

DOCUMENTED = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 75}
FACT = "The tide gauge is read every ten minutes because of the swell."


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def junk(path: Path) -> None:
    path.write_bytes(b"\x00\xff junk \n" * 20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other_columns(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def each(pattern: str, damage: Callable[[Path], object]) -> Damage:
    """Return a damage to all that a pattern finds in the store; it finds something."""

    def done(home: Path) -> None:
        found = sorted(home.glob(pattern))
        assert found, pattern
        for path in found:
            damage(path)

    return done


def first(pattern: str, damage: Callable[[Path], object]) -> Damage:
    """Return a damage to the first file that a pattern finds."""
    return lambda home: damage(sorted(home.glob(pattern))[0])


def written(name: str, text: str) -> Damage:
    """Return a damage that puts a text in the place of a file."""

    def done(home: Path) -> None:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)

    return done


def gone(name: str) -> Damage:
    """Return a damage that removes a file or folder."""
    return lambda home: shutil.rmtree(home / name) if (home / name).is_dir() else (home / name).unlink()


def made_folder(name: str) -> Damage:
    """Return a damage that puts a folder in the place of a file."""

    def done(home: Path) -> None:
        (home / name).unlink(missing_ok=True)
        (home / name).mkdir(parents=True)

    return done


def made_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("a file")


ENTRIES = {
    "list": "[]",
    "fields": '{"entry_id": 1}',
    "id": json.dumps(
        {
            "entry_id": "id",
            "recorded_at": "2026-01-01T00:00:00+00:00",
            "kind": "remember",
            "project_id": "kelp",
            "memory_id": None,
            "actor": "user",
            "payload": "{}",
        }
    ),
}

# What is made from the lake: made again by the command that meets it, to the row.
HEALED: dict[str, Damage] = {
    "no tables": gone("tables"),
    "no published files": gone("published"),
    "no database": gone("published/memory.duckdb"),
    "no briefs": each("published/*/brief.md", Path.unlink),
    "briefs of other bytes": each("published/*/brief.md", junk),
    "snapshots damaged": each("published/*.parquet", junk),
    "no table of memories": each("tables/*/memories.lance", shutil.rmtree),
    "memories without rows": each("tables/*/memories.lance/data/*", Path.unlink),
    "memories cut": each("tables/*/memories.lance/data/*", cut),
    "edges cut": each("tables/*/edges.lance/data/*", cut),
    "versions damaged": each("tables/*/passages.lance/_versions/*", junk),
    "a file for a table": each("tables/*/edges.lance", made_file),
    "no search index": gone("tables/search.sqlite"),
    "the search index damaged": each("tables/search.sqlite", junk),
    "a folder for the search index": made_folder("tables/search.sqlite"),
    "vectors damaged": each("lake/vectors/*/*.parquet", junk),
    "told lines a list": written("runs/told.json", "[]"),
    "told lines cut": written("runs/told.json", '{"a": {"b'),
    "told lines of other types": written("runs/told.json", '{"kelp": {"x": [[1]]}}'),
    "projects a list": written("published/projects.json", "[]"),
    "hook settings cut": written("hook_settings.json", '{"a'),
    "hook settings a list": written("hook_settings.json", "[]"),
    "background a list": written("runs/background.json", "[7]"),
    "counts of other types": written("published/counts.json", '{"x": []}'),
    "reports a list": each("runs/reports/*.json", lambda path: path.write_text("[]")),
    "reports cut": each("runs/reports/*.json", cut),
    "a note of the model of other types": written("runs/embedder.json", '{"model": []}'),
    "tickets of no shape": written("staging/new/a.json", '{"version": 1, "transcript_path": "/\\ud800"}'),
    "reasons of no shape": written("staging/set_aside/a.reason", "[1"),
    **{f"a journal entry: {name}": written("staging/journal/a.json", e) for name, e in ENTRIES.items()},
}

# What is the truth, or a person's own: said, with what to do; nothing is changed.
NAMED: dict[str, tuple[Damage, str]] = {
    "no manifest": (gone("runs/manifest.json"), "CORTEX_E_LAKE"),
    "no runs": (gone("runs"), "CORTEX_E_LAKE"),
    **{
        f"manifest: {text[:30]}": (written("runs/manifest.json", text), code)
        for text, code in {
            "[]": "CORTEX_E_MANIFEST",
            "null": "CORTEX_E_MANIFEST",
            '{"version": 1, "gen': "CORTEX_E_MANIFEST",
            "[" * 100_000: "CORTEX_E_MANIFEST",
            '{"version": 1, "generation": "x", "files": [], "cursors": {}, "stages": {}}': (
                "CORTEX_E_MANIFEST"
            ),
            '{"version": 1, "generation": 1, "files": {"../x": {}}, "cursors": {}, "stages": {}}': (
                "CORTEX_E_MANIFEST"
            ),
            "{}": "CORTEX_E_SCHEMA",
        }.items()
    },
    "a folder for the manifest": (made_folder("runs/manifest.json"), "CORTEX_E_MANIFEST"),
    **{
        f"{table} {name}": (first(f"lake/{table}/*/*.parquet", damage), "CORTEX_E_DAMAGED")
        for table in ("turns", "events", "journal")
        for name, damage in (("cut", cut), ("junk", junk), ("empty", empty), ("gone", Path.unlink))
    },
    "turns of other columns": (first("lake/turns/*/*.parquet", other_columns), "CORTEX_E_DAMAGED"),
    "no lake": (gone("lake"), "CORTEX_E_DAMAGED"),
    "files of projects unknown": (written("runs/surfaces.json", "[]"), "CORTEX_E_DAMAGED"),
    "config not TOML": (written("config.toml", "a = = b"), "CORTEX_E_USAGE"),
    "config of other types": (written("config.toml", "[brief]\ntokens = 'many'\n"), "CORTEX_E_USAGE"),
    "config without sections": (written("config.toml", "brief = 7\n"), "CORTEX_E_USAGE"),
    "config of projects": (written("config.toml", "project = 3\n"), "CORTEX_E_USAGE"),
    "a folder for the config": (made_folder("config.toml"), "CORTEX_E_USAGE"),
    "policy empty": (written("policy/thresholds.csv", ""), "CORTEX_E_SCHEMA"),
    "policy of other types": (
        written("policy/thresholds.csv", "name,value,unit,why\nshown_min_confidence,many,x,y\n"),
        "CORTEX_E_UNKNOWN_VALUE",
    ),
    "a folder for the lease": (made_folder("runs/lease.lock"), "CORTEX_E_STORE_NOT_WRITABLE"),
}

READS = [
    ["status"],
    ["recall", "why SQLite?", "--all-projects"],
    ["brief", "--project", "kelp"],
    ["sql", "select count(*) from memories, turns"],
    ["doctor"],
]
WRITES = [["remember", "--global", FACT], ["run", "--engine", "plain"]]
OTHERS = [
    ["recall", "why SQLite?", "--all-projects", "--as-of", "2026-11-02"],
    ["brief", "--explain", "--project", "kelp"],
    ["brief", "--archive", "--project", "kelp"],
    ["stats", "--project", "kelp"],
    ["review", "--project", "kelp"],
    ["projects"],
    ["projects", "rename", "kelp", "kelpie"],
    ["config"],
    ["config", "set", "brief.tokens", "900"],
    ["export"],
    ["consolidate"],
    ["consolidate", "--dry-run"],
    ["consolidate", "--undo"],
    ["checkpoint", "c1"],
    ["rederive"],
    ["rebuild"],
    ["rebuild", "--check"],
    ["nightly", "--engine", "plain"],
    ["forget", "MEMORY"],
    ["pin", "MEMORY"],
    ["edit", "MEMORY", FACT],
    ["reset", "--project", "kelp", "--yes"],
    ["backup", "BACKUP"],
]


@pytest.fixture(scope="module")
def _sound_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("sound")
    bench = Bench(folder / "home", folder / "projects")
    decisions("s1").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.backfill()
    yield bench.home


@pytest.fixture
def sound(_sound_store: Path, home: Path) -> Callable[[], Path]:
    """Return a function that puts a sound store in the place of the test's own."""

    def put() -> Path:
        for path in home.parent.glob(f"{home.name}*"):
            shutil.rmtree(path)
        shutil.copytree(_sound_store, home)
        (home / "staging" / "journal").mkdir(parents=True, exist_ok=True)
        return home

    return put


def texts(home: Path) -> set[str]:
    """Return the texts of all memories."""
    store = Store(home)
    rows = [store.tables.open(scope, "memories").read() for scope in store.tables.scopes()]
    return {text for table in rows for text in table["text"].to_pylist()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for transcripts."""
    return tmp_path / "projects"


def called(cortex: Cortex, words: list[str]) -> tuple[int, str]:
    """Call a command; a traceback fails the test. Return its code and all that it printed."""
    answer = cortex(*words)
    said = answer.out + answer.err
    assert answer.code in DOCUMENTED, (words, said)
    if answer.code and words[0] != "doctor":
        assert "[CORTEX_E" in said, (words, said)
    return answer.code, said


def half(commands: list[list[str]], name: str) -> list[list[str]]:
    """Return every second command, the others for the next damage: all meet all kinds of damage."""
    return commands[[*HEALED, *NAMED].index(name) % 2 :: 2]


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", HEALED)
def test_what_is_made_from_the_lake_is_made_again_by_the_command_that_meets_it(cortex, sound, name):
    expected = contents(sound())
    for words in half(READS, name):
        HEALED[name](home := sound())
        code, said = called(cortex, words)
        assert code == 0 or words == ["doctor"], (words, said)
    HEALED[name](home := sound())
    assert called(cortex, ["run", "--engine", "plain"])[0] == 0
    if "cut" not in name:  # a run does not read edges and passages that nothing has changed
        assert difference(contents(home), expected) == {}
    assert called(cortex, ["rebuild"])[0] == 0
    assert texts(home) == texts(sound())
    HEALED[name](home := sound())
    assert called(cortex, ["remember", "--global", FACT])[0] == 0
    assert FACT in Store(home).tables.open("global", "memories").read()["text"].to_pylist()


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", NAMED)
def test_what_is_the_truth_is_named_with_the_next_step_and_left_as_it_is(cortex, sound, name):
    damage, code = NAMED[name]
    said = []
    for words in [*half(READS, name), *half(WRITES, name)]:
        damage(home := sound())
        before = {p: p.read_bytes() for p in (home / "lake").rglob("*.parquet")}
        exit_code, text = called(cortex, words)
        said.append(text if exit_code else "")
        assert all(path.read_bytes() == content for path, content in before.items()), words
    assert any(code in text for text in said), said


FULL = ["no tables", "memories cut", "turns cut", "journal junk", "manifest: []", "no manifest"]


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", FULL)
def test_no_command_ends_in_a_traceback(cortex, sound, tmp_path, name):
    damage = HEALED.get(name) or NAMED[name][0]
    memory_id = Store(sound()).tables.open("kelp-0f5bd695", "memories").read()["memory_id"][0].as_py()
    given = {"MEMORY": memory_id[:12], "BACKUP": str(tmp_path / "backup")}
    for words in OTHERS[FULL.index(name) % 2 :: 2]:
        damage(sound())
        called(cortex, [given.get(word, word) for word in words])


def test_a_damaged_file_costs_its_project_alone_and_is_named_with_what_it_holds(cortex, sound, folder):
    home = sound()
    [path] = home.glob("lake/turns/project=reef*/*.parquet")
    cut(path)
    decisions("s3").write(folder)
    decisions("s4", cwd="/home/dev/reef").write(folder)
    answer = cortex("backfill", folder, "--engine", "plain")
    assert answer.code == 17
    for part in (path.name, "7 rows", "the turns of project reef", "--set-aside", "cortex restore"):
        assert part in answer.err, part
    [kelp] = [scope for scope in Store(home).tables.scopes() if scope.startswith("kelp")]
    assert any("s3" in text for text in Store(home).tables.open(kelp, "memories").read()["text"].to_pylist())
    assert len(Store(home).staging.list_waiting()) == 1  # that of the other project
    answer = cortex("rebuild", "--set-aside")
    assert answer.code == 0 and path.name in answer.err
    assert cortex("run", "--engine", "plain").code == 0
    assert Store(home).staging.list_waiting() == []
    [reef] = [scope for scope in Store(home).tables.scopes() if scope.startswith("reef")]
    assert any("s4" in text for text in Store(home).tables.open(reef, "memories").read()["text"].to_pylist())


def flip(path: Path) -> None:
    """Flip the bit of a file that Parquet does not miss: it is read, with other rows."""
    content = path.read_bytes()
    for at in range(4, len(content)):
        other = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        try:
            rows = pq.read_table(pa.BufferReader(other))
        except (pa.ArrowException, OSError, ValueError):
            continue
        if not rows.equals(pq.read_table(pa.BufferReader(content))):
            return path.write_bytes(other) and None
    raise AssertionError("no such bit")


def test_a_flipped_bit_is_found_by_run_nightly_rebuild_and_doctor(cortex, sound):
    for words in (["run"], ["nightly"], ["rebuild"], ["rebuild", "--check"], ["backup", "b"], ["doctor"]):
        [path] = (home := sound()).glob("lake/turns/project=kelp*/*.parquet")
        flip(path)
        answer = cortex(*words)
        assert answer.code == (1 if words == ["doctor"] else 17), words
        assert "is not as it was written" in answer.out + answer.err and path.name in answer.out + answer.err
        assert path.is_file() and home.is_dir()


@pytest.mark.parametrize("query", ["select count(*) from turns", "select * from tool_calls"])
def test_a_query_uses_no_row_of_a_lake_file_with_a_flipped_bit(cortex, sound, query):
    [path] = sound().glob("lake/turns/project=kelp*/*.parquet")
    flip(path)
    answer = cortex("sql", query)
    assert answer.code == 17 and answer.out == ""
    assert "is not as it was written" in answer.err and path.name in answer.err
    assert cortex("sql", "select count(*) from memories").code == 0


@pytest.mark.parametrize("table", ["turns", "events", "journal"])
def test_recall_answers_the_same_or_names_the_lake_file_with_a_flipped_bit(cortex, sound, table):
    home = sound()
    words = ["recall", "--all-projects", "harvest records"]
    before = cortex(*words)
    path, *_ = home.glob(f"lake/{table}/*/*.parquet")
    flip(path)
    answer = cortex(*words)
    assert answer.out == before.out or (answer.code == 17 and path.name in answer.err)


@pytest.mark.parametrize("words", [["run"], ["rebuild"], ["rebuild", "--set-aside"]])
def test_a_flipped_bit_is_mended_from_a_backup_that_the_store_knows_of(cortex, sound, tmp_path, words):
    home = sound()
    assert cortex("backup", tmp_path / "backup").code == 0
    path, *_ = home.glob("lake/journal/*/*.parquet")
    content = path.read_bytes()
    flip(path)
    assert cortex(*words).code == 0
    assert path.read_bytes() == content
    flip(path)
    path.unlink()
    assert cortex(*words).code == 0
    assert path.read_bytes() == content and list((home / "staging" / "tmp").iterdir()) == []


def test_a_flipped_bit_is_mended_from_the_clients_transcripts_that_are_still_there(cortex, sound, folder):
    home = sound()
    decisions("s1").write(folder)
    before = texts(home)
    [path] = home.glob("lake/turns/project=kelp*/*.parquet")
    flip(path)
    assert cortex("rebuild", "--set-aside").code == 0
    assert cortex("backfill", folder).code == 0
    assert texts(home) == before
    assert "each as it was written" in cortex("doctor").out


def test_missing_tables_are_said_and_made_again_by_the_same_command(cortex, sound):
    home = sound()
    expected = texts(home)
    shutil.rmtree(home / "tables")
    answer = cortex("recall", "why SQLite?", "--all-projects", "--json")
    assert answer.code == 0 and answer.json["results"]
    assert "are gone. Rebuilding it from the lake" in answer.err
    assert texts(home) == expected


ODD = [
    *(
        "it's",
        'double"quote',
        "a space",
        "straße-日本",
        "100%41",
        "a#b",
        "star*",
        "[ab]",
        "$HOME",
        "semi;colon",
    ),
    *("a&b", "{x}", "é\u202e"),
]


# Those that mean something to several formats at once, and all in one path: each damages the path for itself.
@pytest.mark.spread(2)
@pytest.mark.parametrize("name", ["it's", "[ab]", "100%41", "/".join(ODD)])
def test_a_store_lies_at_any_path_that_its_tables_can_have(cortex, folder, tmp_path, monkeypatch, name):
    import duckdb

    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / name))
    decisions().write(folder)
    (tmp_path / "a" / "lake").mkdir(parents=True)  # what `[ab]` means as a pattern
    for words in (["backfill", str(folder), "--engine", "plain"], *READS[:4], ["rebuild"]):
        answer = cortex(*words)
        assert answer.code == 0, (words, answer.err)
    with duckdb.connect(str(tmp_path / name / "published" / "memory.duckdb"), read_only=True) as database:
        assert database.sql("select count(*) > 0 from turns").fetchall() == [(True,)]


@pytest.mark.parametrize("name", ["new\nline", "tab\t", "a?b", "back\\slash"])
def test_a_path_that_tables_cannot_have_is_refused_with_what_to_do(cortex, tmp_path, monkeypatch, name):
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / name))
    for words in (*READS[:4], *WRITES):
        answer = cortex(*words)
        assert (answer.code, "CORTEX_HOME" in answer.err) == (2, True), words
    assert not (tmp_path / name).exists()
