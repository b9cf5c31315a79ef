"""`cortex forget`: only what a person means, listed first, and also while another run writes."""

import json
from typing import Any

import pytest

from cortex.flows.operations.edit.forget import plan_forget
from cortex.storage.remote.store_lease import lease
from cortex.storage.store import Store
from tests.bench import Bench, kept
from tests.present import present

INVOICES = "The invoice service is written in Go because its owners know Go."
BARGES = "Barges are loaded before the tide turns, heaviest first."
ROPES = "Ropes of the north quay are changed each spring before the tide turns."


@pytest.fixture
def store(cortex, tmp_path, projects, monkeypatch) -> Store:
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "store"))
    here = projects.with_name("here")  # the same in every test: the memories are of its project
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)

    def fill(bench: Bench) -> None:
        for text in (INVOICES, BARGES, ROPES):
            assert cortex("remember", text).code == 0

    kept(Bench(tmp_path / "store", projects), "three memories", fill)
    return Store(tmp_path / "store")


def texts(store: Store) -> list[str]:
    fresh = Store(store.home)
    rows = (fresh.tables.open(s, "memories").read(["text"]).to_pylist() for s in fresh.tables.scopes())
    return sorted(row["text"] for found in rows for row in found)


def ids(store: Store) -> dict[str, str]:
    rows = (store.tables.open(s, "memories").read().to_pylist() for s in store.tables.scopes())
    return {row["text"]: row["memory_id"] for table in rows for row in table}


def kinds(store: Store) -> list[str]:
    return sorted(
        row["kind"] for row in Store(store.home).journal.read().to_pylist() if row["kind"] != "project"
    )


def error_of(answer: Any) -> dict[str, str]:
    error: dict[str, str] = json.loads(answer.out)["error"]
    return error


@pytest.mark.parametrize(
    "words",
    [
        "purple zebra submarine",  # in none
        "the invoice service of the purple zebra",  # half of them
        "before the tide turns",  # in two
        "invoice",  # a single word
        "of the and",  # no content
    ],
)
def test_words_that_could_be_mistaken_forget_nothing(cortex, store, words):
    before = texts(store)
    answer = cortex("forget", "--yes", *words.split(), "--json")
    assert answer.code != 0 and texts(store) == before
    assert "Nothing was forgotten" in error_of(answer)["next_step"]


def test_what_the_words_may_mean_is_listed_with_ids(cortex, store):
    problem = error_of(cortex("forget", "--yes", "tide", "turns", "--json"))["problem"]
    assert BARGES[:40] in problem and ROPES[:40] in problem and INVOICES[:20] not in problem


def test_words_that_stand_in_one_memory_alone_are_enough_with_yes(cortex, store):
    answer = cortex("forget", "--yes", "invoice", "service", "--json")
    assert answer.json["forgotten"] and texts(store) == [BARGES, ROPES]


def test_without_yes_and_nobody_to_ask_words_only_show_what_would_go(cortex, store):
    answer = cortex("forget", "invoice", "service", "--json")
    assert answer.code == 2 and INVOICES[:40] in error_of(answer)["problem"]
    assert len(texts(store)) == 3


def test_what_goes_with_it_is_shown_before_a_person_is_asked(cortex, store, monkeypatch):
    both = f"{BARGES} {ROPES}"
    gone = cortex("remember", both, "--json").json["id"]
    plan = plan_forget(present(), ids(store)[ROPES])
    assert [row["memory_id"] for row in plan.others] == [gone]


def test_an_id_just_printed_is_forgotten_while_another_run_writes(cortex, store):
    with lease(store.home):
        printed = cortex("remember", "Lanterns hang on the seaward side.", "--json").json
        assert printed["searchable"] is False
        answer = cortex("forget", printed["id"][:12], "--json")
        assert answer.code == 0 and answer.json["applied"] is False
        again = cortex("forget", printed["id"][:12], "--json")
        assert again.code == 0
    assert cortex("run", "--engine", "plain").code == 0
    assert not [text for text in texts(store) if "Lanterns" in text]
    assert kinds(store).count("forget") == 2  # the wish and that it was granted


def test_an_id_from_recall_is_forgotten_while_the_tables_are_swapped(cortex, store, tmp_path):
    [result] = [r for r in cortex("recall", "barges", "--json").json["results"] if r["text"] == BARGES]
    store.tables.root.rename(tmp_path / "elsewhere")
    with lease(store.home):
        assert cortex("forget", result["id"][:12], "--json").json["applied"] is False


def test_forgetting_twice_says_that_it_is_done(cortex, store):
    name = cortex("remember", "Lanterns hang on the seaward side.", "--json").json["id"]
    assert cortex("forget", name[:12]).code == 0
    before = kinds(store)
    answer = cortex("forget", name[:12])
    assert answer.code == 0 and "Already" in answer.out
    assert kinds(store) == before


REPEATED = {
    "remember": ["remember", "Lanterns hang on the seaward side."],
    "pin": ["pin", "{id}"],
    "edit": ["edit", "{id}", "Barges are loaded at slack water."],
    "supersede": ["supersede", "{id}", "{other}"],
    "rename": ["projects", "rename", "here", "quay"],
    "forget": ["forget", "{id}"],
    "reset": ["reset", "--project", "here", "--yes"],
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("command", REPEATED)
def test_killed_before_it_took_effect_and_given_again_it_journals_once(cortex, store, command):
    """A run that holds the lease stands for the kill: the entry is written, nothing else is done."""
    known = ids(store)
    words = [word.format(id=known[BARGES], other=known[ROPES]) for word in REPEATED[command]]
    before = len(Store(store.home).journal.read())
    with lease(store.home):
        assert cortex(*words).code == 0
    once = len(Store(store.home).journal.read())
    assert once == before + 1
    assert cortex(*words).code == 0
    after = Store(store.home).journal.read().to_pylist()
    granted = [row for row in after if row["actor"] == "erase"]
    lost = once - len(after) + len(granted)  # what was forgotten takes its entries along
    assert lost >= 0 and Store(store.home).journal.waiting() == []
    assert cortex(*words).code == 0
