"""Editing, pinning, superseding and indexing code: at once, in the journal, and the same after a rebuild."""

import json
from pathlib import Path

from cortex.storage.settings.settings import load_settings
from cortex.storage.store import Store
from tests.store.cli.test_curating import CODE, PROSE, doors, indexed, of_type, remembered, store, table  # noqa: F401
from tests.traces import traces


def test_indexed_prose_is_found_and_leads_to_its_code(cortex, store):
    answer = cortex("index-code", "src/kiln.py", "--json", stdin=PROSE).json
    prose, code = of_type(store, "code_description"), of_type(store, "code")
    assert (prose["memory_id"], code["memory_id"]) == (answer["code_description"], answer["code"])
    assert (prose["text"], code["text"]) == (f"src/kiln.py: {PROSE}", CODE.strip())
    assert (prose["trust"], code["trust"]) == ("assistant", "tool")
    assert {row["source_type"] for row in (prose, code)} == {"code_index"}
    edges = [edge for edge in table(store, "edges") if edge["edge_type"] == "source_of"]
    assert [(edge["source_id"], edge["target_id"]) for edge in edges] == [
        (prose["memory_id"], code["memory_id"])
    ]
    assert cortex("recall", "firing curve", "--json").json["results"][0]["id"] == prose["memory_id"]


def test_a_recalled_description_brings_the_file_and_how_its_code_begins(cortex, store, indexed):
    cortex("remember", "Never open the kiln above 80 degrees.")
    results = cortex("recall", "firing curve of the kiln", "--json").json["results"]
    code_of = {result["memory_type"]: result["code"] for result in results}
    code = of_type(store, "code")
    assert code_of["code_description"] == {
        "memory_id": code["memory_id"], "file": "src/kiln.py", "excerpt": CODE.strip()
    }  # fmt: skip
    assert {type_ for type_, behind in code_of.items() if behind} == {"code_description"}
    shown = cortex("recall", "firing curve").out
    assert "code of src/kiln.py" in shown and "| def kiln_curve(t):" in shown


def test_code_behind_a_better_description_is_no_result_of_its_own_and_else_is(cortex, store, indexed):
    answer = indexed
    code, prose = answer["code"], answer["code_description"]
    by_meaning = cortex("recall", "how is the firing curve computed", "--json").json["results"]
    assert [result["id"] for result in by_meaning] == [prose]
    by_name = cortex("recall", "kiln_curve return", "--json").json["results"]
    assert [result["id"] for result in by_name] == [code, prose]
    assert by_name[1]["code"]["memory_id"] == code


def test_of_long_code_whole_lines_are_shown(cortex, store):
    lines = [f"def kiln_{number}(): return {number}" for number in range(100)]
    Path("src/kiln.py").write_text("\n".join(lines))
    cortex("index-code", "src/kiln.py", "--describe", PROSE)
    [excerpt] = [
        result["code"]["excerpt"]
        for result in cortex("recall", "firing curve", "--json").json["results"]
        if result["code"]
    ]
    assert excerpt.splitlines() == lines[:10]


def test_code_that_was_forgotten_is_not_shown(cortex, store, indexed):
    answer = indexed
    cortex("forget", answer["code"], "--yes")
    results = cortex("recall", "firing curve", "--json").json["results"]
    assert [result["code"] for result in results if result["id"] == answer["code_description"]] == [None]


def test_a_file_indexed_again_takes_its_own_place(cortex, store, indexed):
    first = indexed
    Path("src/kiln.py").write_text("def kiln_curve(t): ...\n")
    assert cortex("index-code", "src/kiln.py", "--describe", "A stub.", "--json").json == first
    assert of_type(store, "code")["text"] == "def kiln_curve(t): ..."
    assert of_type(store, "code_description")["text"] == "src/kiln.py: A stub."


def test_an_index_is_the_same_after_a_rebuild(cortex, store, indexed):
    assert cortex("rebuild", "--check").code == 0
    before = table(store, "memories"), table(store, "edges")
    cortex("rebuild")
    again = Store(load_settings().home)
    assert (table(again, "memories"), table(again, "edges")) == before


def test_from_a_subfolder_a_file_has_the_same_name(cortex, store, monkeypatch):
    (Path.cwd() / ".git").mkdir()
    monkeypatch.chdir("src")
    assert cortex("index-code", "kiln.py", "--describe", PROSE, "--json").json["file"] == "src/kiln.py"


def test_secrets_and_private_parts_of_code_are_not_kept(cortex, store):
    Path("src/kiln.py").write_text('password = "hunter2-and-more"\n# <private>kilndiary</private>\nx = 1\n')
    assert cortex("index-code", "src/kiln.py", "--describe", "Settings <private>mine</private>.").code == 0
    text = of_type(store, "code")["text"]
    assert "[REDACTED:password]" in text and "kilndiary" not in text and "x = 1" in text
    assert traces(load_settings().home, "hunter2") == traces(load_settings().home, "kilndiary") == []


def test_an_edit_changes_the_words_and_nothing_else(cortex, store):
    name = remembered(cortex, "Levels are millimetres.")
    [before] = table(store, "memories")
    cortex("edit", name[:8], "Levels are centimetres.")
    [after] = table(store, "memories")
    assert (after["memory_id"], after["text"]) == (name, "Levels are centimetres.")
    assert after["created_at"] == before["created_at"]
    assert cortex("rebuild", "--check").code == 0


def test_a_pin_holds_until_it_is_taken_off(cortex, store):
    name = remembered(cortex, "Levels are millimetres.")
    cortex("pin", name[:8])
    assert table(store, "memories")[0]["is_pinned"]
    assert cortex("pin", name[:8], "--off", "--json").json["pinned"] is False
    assert not table(store, "memories")[0]["is_pinned"]


def test_the_superseded_is_no_longer_shown(cortex, store, doors):
    old, new = doors
    [row] = [row for row in table(store, "memories") if row["memory_id"] == old]
    assert (row["status"], row["superseded_by"]) == ("superseded", new)
    assert [found["id"] for found in cortex("recall", "door", "--json").json["results"]] == [new]
    assert "door is red" not in cortex("brief").out


def test_a_replacement_has_its_edge_and_recall_says_what_it_replaced(cortex, store, doors):
    old, new = doors
    [edge] = [edge for edge in table(store, "edges") if edge["edge_type"] == "supersedes"]
    assert (edge["source_id"], edge["target_id"], edge["rule"]) == (new, old, "person")
    [result] = cortex("recall", "door", "--json").json["results"]
    assert result["replaces"] == [{"id": old, "text": "The door is red."}]
    assert f"In place of: The door is red.  [{old[:12]}]" in cortex("recall", "door").out


def test_a_replacement_taken_back_shows_both_again(cortex, store, doors):
    old, new = doors
    assert cortex("supersede", new[:8], old[:8]).code == 2  # else neither would be shown
    assert cortex("supersede", "--undo", old[:8]).code == 0
    states = {row["memory_id"]: (row["status"], row["superseded_by"]) for row in table(store, "memories")}
    assert states == {old: ("active", None), new: ("active", None)}
    assert "supersedes" not in {edge["edge_type"] for edge in table(store, "edges")}
    assert cortex("supersede", "--undo", old[:8]).code == 0  # said twice, it is still so
    assert cortex("supersede", "--undo", new[:8]).code == 2  # that one was never superseded
    assert cortex("supersede", old[:8]).code == 2


def test_a_memory_does_not_supersede_itself_nor_is_it_edited_away(cortex, store):
    name = remembered(cortex, "The door is red.")
    assert cortex("supersede", name[:8], name[:8]).code == 2
    assert cortex("edit", name[:8], "--", " ").code == 18


def test_forgetting_an_edited_memory_erases_what_it_said_before_too(cortex, store):
    name = remembered(cortex, "The gallery's alarm is off on Mondays.")
    cortex("edit", name[:8], "The gallery has an alarm that nobody trusts.")
    assert traces(load_settings().home, "Mondays")
    assert cortex("forget", name[:8]).code == 0
    assert traces(load_settings().home, "Mondays") == traces(load_settings().home, "nobody trusts") == []


def test_code_of_a_file_indexed_twice_is_erased_whole(cortex, store, indexed):
    Path("src/kiln.py").write_text("def reef_levels(): ...\n")
    answer = cortex("index-code", "src/kiln.py", "--describe", "A stub of levels.", "--json").json
    assert traces(load_settings().home, "kiln_curve")
    assert cortex("forget", answer["code"][:12]).code == 0
    assert traces(load_settings().home, "kiln_curve") == traces(load_settings().home, "reef_levels") == []


def test_a_confirmed_memory_counts_as_said_today_and_is_in_the_journal(cortex, store, doors):
    _, new = doors
    before = {row["memory_id"]: row["updated_at"] for row in table(store, "memories")}
    answer = cortex("confirm", new[:6])
    assert answer.out.startswith(f"{new[:12]} still holds: The door is blue")
    after = {row["memory_id"]: row["updated_at"] for row in table(store, "memories")}
    assert after[new] > before[new]


def test_a_folder_is_listed_described_in_one_call_and_listed_again_when_it_changes(cortex, store):
    Path("src/pump.py").write_text("def lift(): ...\n")
    Path("src/empty.py").write_text("")

    def listed(*patterns):
        files = cortex("index-code", "--changed", *patterns, "--json").json["files"]
        return {row["path"]: row["state"] for row in files}

    assert listed() == {} and listed("src") == {"src/kiln.py": "new", "src/pump.py": "new"}
    assert listed("src/p*.py") == {"src/pump.py": "new"}
    words = {"src/kiln.py": PROSE, "src/pump.py": "Lifts water."}
    answer = cortex("index-code", "--many", "--json", stdin=json.dumps(words)).json
    assert [row["file"] for row in answer["files"]] == list(words)
    assert listed("src") == {}
    Path("src/pump.py").write_text("def lift(by): ...\n")
    Path("src/kiln.py").unlink()
    assert listed() == {"src/kiln.py": "gone", "src/pump.py": "changed"}


def test_of_many_files_all_are_indexed_or_none(cortex, store):
    words = {"src/kiln.py": PROSE, "src/missing.py": "Is not there."}
    assert cortex("index-code", "--many", stdin=json.dumps(words)).code == 5
    assert table(store, "memories") == []
    assert cortex("index-code", "--many", stdin='["src/kiln.py"]').code == 2
    Path("src/glaze.py").write_text("def glaze(): ...\n")
    for path, prose in (("src/\0", "x"), ("src/\ud800", "x"), ("src/glaze.py", "\ud800")):
        damaged = {"src/kiln.py": PROSE, path: prose}
        assert cortex("index-code", "--many", stdin=json.dumps(damaged)).code == 2
        assert table(store, "memories") == []
    assert cortex("index-code", "--many", stdin="[" * 100_000).code == 2
    assert cortex("remember", "We use the caf\udce9 port for readings.").code == 2
    assert cortex("index-code", "src/kiln.py", "src/pump.py").code == 2
