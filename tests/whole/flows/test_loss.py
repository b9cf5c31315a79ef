"""A run that would hide much of what was shown publishes nothing and says why (law 8, spec 8.6)."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import rebuild
from cortex.flows.past.rederive import promote, propose_rederivation
from cortex.flows.reading import shards
from cortex.flows.run import fingerprints
from cortex.flows.stages import guard
from cortex.flows.stages import publish as rendering
from cortex.hooks import background
from cortex.transforms.errors import LossRefused
from cortex.transforms.extract.language import candidate
from cortex.transforms.memory import fold
from cortex.transforms.schemas import EVENTS
from tests.bench import NOW, contents, difference, here, leftovers
from tests.present import clock_at, present
from tests.transcripts import Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

REEF_FACTS = (
    "The sonar drops its first ping after a reset.",
    "Buoy names are case sensitive in the old database.",
    "Winter charts are printed upside down.",
    "The lamp needs ninety seconds before it answers.",
)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def known(bench):
    """Return a bench with 14 memories of two projects, and one session that waits."""
    for number in range(3):
        decisions(f"s{number}").write(bench.projects)
    decisions("r1", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()
    Talk("new").user("Go.").assistant("[MEMORY: gotcha] The crane needs two keys.").write(bench.projects)
    bench.stage()
    return bench


def set_policy(bench, name, value):
    folder = bench.home / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "thresholds.csv").write_text(f"name,value,unit,why\n{name},{value},fraction,mine\n")


def shown_of(bench):
    """Return all that is published: tables and briefs, not the lake."""
    said = contents(bench.home)
    return {name: rows for name, rows in said.items() if "/" in name}


def cortex(*words):
    with clock_at(LATER):
        return CliRunner().invoke(main, list(words), obj=present)


def test_a_policy_that_hides_everything_is_refused_and_nothing_is_published(known):
    before = shown_of(known)
    set_policy(known, "shown_min_confidence", 1.01)
    every = len(known.texts()) + len(known.texts("reef"))
    with pytest.raises(LossRefused, match=rf"hide {every} of {every} memories .*a policy table has changed"):
        known.run(now=LATER)
    assert difference(shown_of(known), before) == {}
    assert leftovers(known.home) == []
    assert "crane" in str(known.store.lake.read(EVENTS).to_pylist())  # what waited is in the lake


def test_undone_the_next_run_publishes_what_waited_and_says_no_more(known):
    set_policy(known, "shown_min_confidence", 1.01)
    with pytest.raises(LossRefused):
        known.run(now=LATER)
    (known.home / "policy" / "thresholds.csv").unlink()
    known.run(now=LATER)
    assert any("crane" in text for text in known.texts())
    assert guard.pending_loss(known.store.lake.manifest) is None


def test_accepted_it_passes_once_and_for_all(known):
    set_policy(known, "shown_min_confidence", 1.01)
    every = len(known.texts()) + len(known.texts("reef"))
    assert cortex("run", "--engine", "plain").exit_code == 20
    told = json.loads(cortex("status", "--json").stdout)["pending_loss"]
    assert (told["lost"], told["shown"], told["what"]) == (every, every, "memories")
    assert "--accept-loss" in cortex("status").stdout
    checks = {c["check"]: c for c in json.loads(cortex("doctor", "--json").stdout)["checks"]}
    assert checks["loss"]["mark"] == "!"
    assert cortex("run", "--engine", "plain", "--accept-loss").exit_code == 0
    assert known.texts() == []
    assert json.loads(cortex("status", "--json").stdout)["pending_loss"] is None
    assert cortex("run", "--engine", "plain").exit_code == 0


def test_refused_again_and_again_it_changes_nothing_and_takes_in_what_comes(known):
    set_policy(known, "shown_min_confidence", 1.01)
    with pytest.raises(LossRefused):
        known.run(now=LATER)
    manifest = (known.home / "runs" / "manifest.json").read_bytes()
    with pytest.raises(LossRefused):
        known.run(now=LATER)
    assert (known.home / "runs" / "manifest.json").read_bytes() == manifest
    decisions("more").write(known.projects)
    with pytest.raises(LossRefused):
        known.backfill(now=LATER)
    assert leftovers(known.home) == []


def test_a_policy_that_empties_the_briefs_keeps_the_last_ones(known):
    known.run(now=LATER)
    before = {name: text for name, text in shown_of(known).items() if name.endswith("brief")}
    set_policy(known, "brief_min_confidence", 1.01)
    with pytest.raises(LossRefused, match="lines of briefs"):
        known.run(now=LATER)
    after = {name: text for name, text in shown_of(known).items() if name.endswith("brief")}
    # A brief of a few lines may go: reef's has too few for a share to mean something.
    kept = {name: text for name, text in before.items() if name.startswith("kelp")}
    assert kept and kept.items() <= after.items()
    runs.execute("ingest", known.at(LATER), accepts_loss=True)
    assert {name: text for name, text in shown_of(known).items() if name.endswith("brief")} != before


def test_a_lake_that_lost_its_events_is_refused_by_run_and_rebuild(known):
    known.run(now=LATER)
    before = shown_of(known)
    lake = known.store.lake
    [kelp] = [name for name in lake.manifest.partitions("events") if name.startswith("kelp")]
    with lake.change() as change:
        change.replace(EVENTS, kelp, EVENTS.empty())
    with pytest.raises(LossRefused, match="policy and extractor are the same as before"):
        known.run(now=LATER)
    with runs.opened("rebuild", known.at(LATER)) as run, pytest.raises(LossRefused):
        rebuild(run)
    assert difference(shown_of(known), before) == {}


def test_an_extractor_that_finds_less_is_refused_before_its_events_are_taken(known, monkeypatch):
    known.run(now=LATER)
    before = contents(known.home)
    with monkeypatch.context() as patch:
        patch.setattr(shards, "extract_events", lambda *given: EVENTS.empty())
        with runs.opened("rederive", known.at(LATER)) as run:
            found = propose_rederivation(run)
            with pytest.raises(LossRefused):
                promote(run, found)
    assert difference(contents(known.home), before) == {}


def test_rederive_compares_with_what_is_shown(known):
    known.run(now=LATER)
    set_policy(known, "shown_min_confidence", 1.01)
    told = cortex("rederive").stdout
    [vanished] = re.findall(r"kelp\S*: 0 appear, (\d+) vanish, 0 change, 0 stay", told)
    assert int(vanished) == len(known.texts()) > 3


def test_what_a_person_forgets_is_no_loss(known, monkeypatch, tmp_path):
    known.run(now=LATER)
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")
    with clock_at(LATER):
        forget_all(known)
    assert guard.pending_loss(known.store.lake.manifest) is None
    assert known.texts() == []
    assert cortex("reset", "--project", "reef", "--yes").exit_code == 0
    assert known.texts("reef") == []


def forget_all(bench):
    for memory in bench.memories():
        here().forget(memory["memory_id"])


def test_a_session_that_is_rewound_takes_back_what_it_said(bench):
    talk = decisions("s1")
    for number in range(4):
        talk.assistant(f"[MEMORY: decision] Berth {number} gets a gauge because the swell differs there.")
    talk.write(bench.projects)
    bench.begin()
    assert len(bench.texts()) >= 6
    path = talk.path_in(bench.projects)
    first = talk.records[0]
    again = Talk("s1")
    again.records = [*talk.records]
    again._leaf = first["parentUuid"]
    again.user("Forget all that. What is the tide?").assistant("It is low.").write(bench.projects)
    assert path.is_file()
    bench.backfill(now=LATER)
    assert guard.pending_loss(bench.store.lake.manifest) is None


def test_the_hooks_know_the_code_of_a_refused_run():
    assert LossRefused.exit_code == background.EXIT_LOSS


def test_forgetting_while_a_loss_waits_is_done_in_all_that_people_see(known, monkeypatch, tmp_path):
    known.run(now=LATER)
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")
    briefs = {name: known.store.published.brief(name) for name in known.store.published.projects()}
    row = next(r for r in known.memories() if any(r["text"] in brief for brief in briefs.values()))
    set_policy(known, "shown_min_confidence", 1.01)
    assert cortex("run", "--engine", "plain").exit_code == 20
    done = cortex("forget", row["memory_id"], "--yes", "--json")
    assert (done.exit_code, json.loads(done.stdout)["applied"]) == (0, False)
    assert "once the loss is decided" in done.stderr
    assert row["memory_id"] not in {r["memory_id"] for r in known.memories()}
    assert known.memories("reef")  # what nobody took away is still shown
    assert row["text"] not in cortex("recall", row["text"]).stdout
    words = row["text"].encode()
    shown = [p for d in ("published", "tables", "lake") for p in (known.home / d).rglob("*") if p.is_file()]
    assert [p for p in shown if words in p.read_bytes()] == []
    texts = known.store.published.root / "memories.parquet"
    assert row["text"] not in pq.read_table(texts)["text"].to_pylist()
    (known.home / "policy" / "thresholds.csv").unlink()
    assert cortex("run", "--engine", "plain").exit_code == 0
    assert known.store.published.brief(row["project_id"])
    assert row["text"] not in known.texts()


def test_a_brief_that_loses_too_much_is_held_back_alone(known, monkeypatch):
    talk = Talk("r2", cwd="/home/dev/reef").user("What else?")
    for fact in REEF_FACTS:  # a brief of fewer lines than loss_from_lines is never held back
        talk.assistant(f"[MEMORY: gotcha] {fact}")
    talk.write(known.projects)
    known.backfill(now=LATER)
    [reef] = [name for name in known.store.published.projects() if name.startswith("reef")]
    kept = known.store.published.brief(reef)
    assert kept.count("\n- ") >= 5
    set_policy(known, "brief_min_confidence", 0.0)
    drafted = rendering.draft_of

    def shortened(run, scope):
        draft = drafted(run, scope)
        text = f"# {scope}\n" if scope == reef else draft.brief + "- One more.\n"
        return replace(draft, brief=text)

    monkeypatch.setattr(rendering, "draft_of", shortened)
    with pytest.raises(LossRefused, match="The tables are new"):
        known.run(now=LATER)
    published = known.store.published
    assert published.brief(reef) == kept
    assert all("One more." in published.brief(name) for name in published.projects() if name != reef)
    assert published.database_path.is_file()


def test_an_upgrade_tells_no_more_what_was_prose_alone_and_asks_nobody(known, monkeypatch):
    known.run()
    briefs = {project: known.store.published.brief(project) for project in known.store.published.projects()}
    pinned = min(row["memory_id"] for row in known.memories() if "millimetres" in row["text"])
    assert cortex("pin", pinned).exit_code == 0
    # What an earlier version took for facts: here the tags stand for the assistant's prose.
    for module in (candidate, fold):
        monkeypatch.setattr(module, "is_prose_alone", lambda layer, memory_type: layer == "layer3:tag")
    monkeypatch.setattr(fingerprints, "STAGES_VERSION", "of a later version")
    report = known.run(now=LATER)
    tagged = [row for row in known.memories() if row["memory_type"] in ("decision", "gotcha")]
    assert [row["memory_id"] for row in tagged] == [pinned]
    [row] = [row for row in report.stages if row.stage == "guard"]
    assert re.search(r"\d+ rested on the assistant's prose alone", row.note)
    now = {project: known.store.published.brief(project) for project in briefs}
    assert now != briefs and "crane" not in "".join(now.values())
    assert known.store.lake.notes.untold == {} and known.store.lake.notes.refused_loss is None
