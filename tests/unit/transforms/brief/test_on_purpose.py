"""What a person says on purpose reaches the brief, whatever its words, and leads it (spec 11.2)."""

import re
from datetime import datetime, timedelta
from functools import cache

import pyarrow as pa
import pytest

from cortex.hooks.tokens import tokens_in
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.brief.render import choose, lay_out
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.memory.lifecycle import ACTIVITY, WEAK, age
from cortex.transforms.schemas import EDGES, JOURNAL
from tests.rows import START, entry, event, events
from tests.unit.transforms.brief.test_render import POLICY

SAID_AT = START + timedelta(days=3)
PROJECT, GLOBAL = "reef-1", "global"
WORDS = (
    ("context", "The invoice service is written in Go and owned by the billing team."),
    ("context", "Why do we keep two queues? Because the old one still feeds the warehouse."),
    ("context", "Can the importer be run twice? Yes, it is idempotent."),
    ("context", "I want the staging database to be left alone on Fridays."),
    ("context", "Please never touch the vendored folder."),
    ("context", "Tests pass only with TZ=UTC."),
    ("context", "All tests pass now that the clock is frozen."),
    ("context", "make check is what CI runs"),
    ("context", "Use pnpm"),
    ("progress", "Add retries to the uploader next week."),
    ("progress", "Fix the flaky login test; it fails on Mondays."),
    ("progress", "Half of the handlers are migrated to async."),
    ("progress", "Plan: move to Postgres 17. Done: dump. Now: restore. Next: switch the DSN"),
    ("decision", "Let's look at whether Redis is worth it: it is not, the cache stays in memory."),
    ("decision", "SQLite over Postgres: one file, no server."),
    ("decision", "We will not support Windows."),
    ("gotcha", "psql needs -X in scripts, or .psqlrc changes the output."),
    ("gotcha", "端口 8080 被占用。先停掉旧的代理！"),
    ("gotcha", "빌드 서버에는 디스크가 부족하니 캐시를 지워야 한다."),
    ("pattern", "Utiliser pnpm, jamais npm."),
    ("pattern", "Bitte Commit-Nachrichten immer auf Englisch schreiben."),
    ("pattern", "Los nombres de las ramas empiezan por el número del ticket."),
    ("pattern", "私はタブよりスペースが好きです。"),
    ("pattern", "Prefers tabs"),
    ("architecture", "Gateway → queue → worker; nothing else talks to the database."),
    ("architecture", "The `auth` module owns sessions; `billing/` only reads them."),
    ("architecture", "Три сервиса: шлюз, очередь, обработчик."),
    ("code_description", "scripts/seed.py fills the demo tenant, safe to run twice."),
    ("code_description", "What lives in lib/legacy? Only what the mobile app of 2019 calls."),
    ("context", "Done means: merged, deployed, and seen in Grafana for an hour."),
)  # fmt: skip
LONG = (
    "The nightly export runs at 02:00 UTC on the reporting replica and never on the primary. It takes forty"
    " minutes, and while it runs the replica lags by up to ten. Dashboards that read the replica show a"
    " banner then. Whoever moves the job must move the banner's window too, in ops/banner.yaml. The export's"
    " files are kept for ninety days. After that the bucket's own rule deletes them. Nobody has to do that"
    " by hand. The alert on missing files fires at 04:00."
)


def remembered(text, memory_type="context", *, scope=PROJECT, priority=5, kind="remember", **more):
    payload = {
        "text": text,
        "memory_type": memory_type,
        "category": "global" if scope == GLOBAL else "project",
        "priority": priority,
        **more,
    }
    name = memory_id(scope, memory_type, text)
    return entry(kind, scope, payload, recorded_at=SAID_AT, memory_id=name)


@cache
def of_sessions():
    """Enough facts of sessions, in every section, to fill a brief several times over."""
    types = ("decision", "gotcha", "pattern", "architecture", "progress", "context")
    return [
        event(
            f"Station{number}{kind} reads gauge{number}{kind} because relay{number}{kind} drifts often.",
            memory_type=kind,
            confidence=0.99,
            trust="assistant",
            turn_id=f"{kind}-{number}",
            event_id=f"{kind}-{number}",
            said_at=START + timedelta(days=2),
        )
        for kind in types
        for number in range(20)
    ]


def aged_at(folded: pa.Table, now: datetime) -> pa.Table:
    """Return MEMORIES aged to `now`, both scopes worked on every day until then."""
    days = [START + timedelta(days=n) for n in range((now - START).days + 1)]
    rows = [{"project_id": scope, "active_at": day} for scope in (PROJECT, GLOBAL) for day in days]
    activity = pa.Table.from_pylist(rows, schema=ACTIVITY)
    return age(folded, EDGES.empty(), POLICY, now, activity=activity, weak=WEAK.empty_table()).memories


def choices(*entries, budget_tokens=1000, days=0) -> list[Choice]:
    now = SAID_AT + timedelta(days=days)
    folded = fold(events(*of_sessions()), JOURNAL.of(list(entries)), POLICY)
    aged = aged_at(folded, now)
    return choose(aged, EDGES.empty(), POLICY, project_name="reef", budget_tokens=budget_tokens)


def choice_of(row, *others, **more) -> Choice:
    [choice] = [c for c in choices(row, *others, **more) if c.memory_id == row["memory_id"]]
    return choice


def test_the_brief_of_these_sessions_is_full():
    assert any(choice.reason == "no room left" for choice in choices())


@pytest.mark.first_is_quick
@pytest.mark.spread(8)
@pytest.mark.parametrize("number", range(len(WORDS)))
def test_what_is_remembered_is_told_whole_in_the_full_brief_and_leads_its_section(number):
    memory_type, text = WORDS[number]
    row = remembered(text, memory_type, scope=(PROJECT, GLOBAL)[number % 2])
    told = choices(row)
    choice = next(c for c in told if c.memory_id == row["memory_id"])
    assert choice.is_shown, choice.reason
    assert choice == next(c for c in told if c.is_shown and c.section == choice.section)
    assert text.startswith("Plan: ") or choice.text.startswith(f"- {text} (user, ")


def test_the_lowest_priority_is_told_and_the_highest_is_told_first():
    low, high = (remembered(f"Port {p} is taken.", priority=p) for p in (1, 10))
    told = [c.memory_id for c in choices(low, high) if c.is_shown and c.section == "Context"]
    assert told[:2] == [high["memory_id"], low["memory_id"]]


def test_a_long_text_is_cut_between_statements():
    line = choice_of(remembered(LONG)).text
    told = re.sub(r" \(user, .*", "", line.removeprefix("- "))
    assert LONG.startswith(told) and told != LONG
    assert LONG[len(told) :].startswith(" ") and told.endswith(".")


def test_a_long_text_without_spaces_between_its_statements_is_cut_between_them():
    text = "夜間のエクスポートは副系で二時に走る。" * 3 + "その間は副系が最大十分おくれる。" * 40
    line = choice_of(remembered(text)).text
    told = re.sub(r" \(user, .*", "", line.removeprefix("- "))
    assert text.startswith(told) and told.endswith("。") and told != text


def test_where_the_room_is_small_fewer_statements_are_told():
    long, short = (choice_of(remembered(LONG), budget_tokens=tokens) for tokens in (1000, 140))
    assert short.is_shown and len(short.text) < len(long.text)
    assert re.sub(r" \(user, .*", "", short.text).endswith("the primary.")


def test_an_edited_memory_is_said_on_purpose():
    first = of_sessions()[-1]
    name = memory_id(PROJECT, first["memory_type"], first["text"])
    payload = {"text": "Should the relay be replaced? No."}
    row = entry("edit", PROJECT, payload, recorded_at=SAID_AT, memory_id=name)
    choice = choice_of(row)
    assert choice.is_shown and choice.text.startswith("- Should the relay be replaced? No. (user, ")


def test_a_pinned_request_is_told_with_the_rest_full():
    text = "Please look at the relay of station 77."
    asked = event(text, memory_type="progress", confidence=0.6, turn_id="t77", layer="layer2:user")
    name = memory_id(PROJECT, "progress", text)
    pin = entry("pin", PROJECT, {}, recorded_at=SAID_AT, memory_id=name)

    def shown(*entries):
        folded = fold(events(*of_sessions(), asked), JOURNAL.of(list(entries)), POLICY)
        aged = aged_at(folded, SAID_AT)
        told = choose(aged, EDGES.empty(), POLICY, project_name="reef", budget_tokens=1000)
        return any(c.is_shown for c in told if c.memory_id == name)

    assert not shown() and shown(pin)


def test_age_and_a_person_take_it_out():
    row = remembered("Station 99 has a new relay.", "progress")
    assert choice_of(row).is_shown
    assert all(c.memory_id != row["memory_id"] for c in choices(row, days=13))
    archived = entry(
        "archive", PROJECT, {}, recorded_at=SAID_AT + timedelta(hours=1), memory_id=row["memory_id"]
    )
    assert all(c.memory_id != row["memory_id"] for c in choices(row, archived))


def test_the_budget_holds_when_more_is_remembered_than_fits():
    rows = [remembered(f"Relay{n} stays closed while pump{n} of dock{n} runs.") for n in range(60)]
    told = choices(*rows)
    assert tokens_in(lay_out(told, project_name="reef")) <= 1000
    own = {row["memory_id"] for row in rows}
    assert 3 <= sum(c.is_shown for c in told if c.memory_id in own) < 60


def test_what_sessions_say_alike_gives_way():
    text = of_sessions()[0]["text"]
    row = remembered(f"{text} Always", "decision")
    told = choices(row)
    assert next(c for c in told if c.memory_id == row["memory_id"]).is_shown
    name = memory_id(PROJECT, "decision", text)
    assert all(not c.is_shown for c in told if c.memory_id == name)
