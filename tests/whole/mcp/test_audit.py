"""The rate limit, exact though calls come at once, and the audit log, which has every call and no words."""

import json
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from cortex.flows.engines import runs
from cortex.flows.operations.ask.answering import answer_over
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.operations.edit import forget
from cortex.flows.operations.maintain.audit import read_calls
from cortex.mcp.protocol.client import Caller, Client, SlidingWindow
from cortex.storage.settings.settings import ModelSettings, load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import RateLimited
from cortex.transforms.schemas import REPLIES
from cortex.transforms.writer.answer import GivenMemory
from tests.bench import NOW, Bench
from tests.model_server import Answer, ModelServer, always
from tests.protocol import text_of
from tests.store.mcp.test_tools import error_of


def model_at(url):
    return ModelSettings("api", api_key="sk-none", base_url=url)


def test_a_window_slides_and_does_not_begin_again_with_each_minute():
    now = [0.0]
    window = SlidingWindow(lambda: now[0])
    for at in (0.0, 30.0, 59.0):
        now[0] = at
        window.admit(3)
    with pytest.raises(RateLimited, match="Wait 1 seconds"):
        window.admit(3)
    now[0] = 60.0
    window.admit(3)
    with pytest.raises(RateLimited, match="Wait 30 seconds"):
        window.admit(3)


def test_a_window_counts_threads_exactly():
    window, admitted = SlidingWindow(), []

    def call():
        for _ in range(100):
            try:
                window.admit(250)
                admitted.append(1)
            except RateLimited:
                pass

    threads = [threading.Thread(target=call) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 250


def test_of_a_thousand_calls_at_once_the_limit_is_answered_and_nothing_is_left_running(assistant):
    before = threading.active_count()

    async def storm(client):
        codes = Counter()

        async def call(number):
            result = await client.call_tool("query", {"sql": f"select {number}"})
            codes[json.loads(text_of(result))["code"] if result.is_error else "ok"] += 1

        async with anyio.create_task_group() as group:
            for number in range(1_000):
                group.start_soon(call, number)
        return codes

    assert assistant.do(storm) == {"ok": 120, "CORTEX_E310": 880}
    give_up_at = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < give_up_at:
        time.sleep(0.05)  # idle workers end once the loop is closed
    assert threading.active_count() <= before
    outcomes = Counter(row["outcome"] for row in read_calls(assistant.context))
    assert outcomes == {"ok": 120, "CORTEX_E310": 1}  # of refusals the first of a minute


def test_calls_beyond_the_setting_are_refused_with_the_time_to_wait(assistant):
    (assistant.home / "config.toml").write_text("[mcp]\ncalls_per_minute = 2\n")

    async def three(client):
        return [await client.call_tool("query", {"sql": "select 1"}) for _ in range(3)]

    first, second, third = assistant.do(three)
    assert not first.is_error and not second.is_error
    report = error_of(third)
    assert (report["code"], report["category"], report["retryable"]) == ("CORTEX_E310", "rate_limit", True)
    assert "Wait" in report["suggestion"]


def test_every_call_is_noted_with_who_what_and_what_came_of_it_but_no_words(assistant):
    assistant.call("recall", question="a question about Zanzibar", limit=3)
    assistant.call("recall", colour="vermilion")
    assistant.call(
        "learn", text="The Zanzibar relay in pump.py needs 5 s.", type="gotcha", evidence=["zz.py"]
    )
    assistant.do(lambda client: client.read_resource("cortex://brief"))
    rows = {(row["tool"], row["outcome"]): row for row in read_calls(assistant.context)}
    assert len(rows) == 4 and ("read_resource", "ok") in rows
    recalled, learned = rows["recall", "ok"], rows["learn", "ok"]
    assert recalled["transport"] == "stdio" and recalled["caller"].startswith("mcp ")
    assert json.loads(recalled["arguments"]) == {"question": "25 characters", "limit": 3}
    assert ("recall", "CORTEX_E202") in rows and recalled["project_id"].startswith("tidepool")
    assert json.loads(learned["arguments"])["evidence"] == "1 items"
    assert "Zanzibar" not in str(read_calls(assistant.context)) and recalled["seconds"] >= 0


def test_a_run_takes_the_calls_into_the_lake_once(assistant):
    assistant.call("query", sql="select 1")
    bench = Bench(assistant.home, assistant.home)
    waiting = assistant.home / "staging" / "calls"
    kept = {path: path.read_bytes() for path in waiting.iterdir()}
    bench.run()
    assert list(waiting.iterdir()) == [] and len(read_calls(assistant.context)) == 1
    for path, content in kept.items():  # as if the run had been killed before it removed them
        path.write_bytes(content)
    (waiting / "damaged.json").write_text("{")
    bench.run()
    assert list(waiting.iterdir()) == [] and len(read_calls(assistant.context)) == 1
    assert Store(assistant.home).lake.manifest.partitions("calls")


def test_a_damaged_note_is_passed_over(assistant):
    assistant.call("query", sql="select 1")
    folder = assistant.home / "staging" / "calls"
    for number, text in enumerate(("{", "[]", '{"call_id": 1}', '{"called_at": "soon"}', "")):
        (folder / f"{number}.json").write_text(text)
    assert len(read_calls(assistant.context)) == 1


def test_a_call_costs_what_it_asked_for_and_not_what_others_did_meanwhile(assistant):
    """Calls are carried out four at a time: the cost of one must not stand in the row of another."""
    client = Client(assistant.context)
    replies = iter((0.01, 0.002))

    def paid(context):
        with ModelServer(always(Answer("{}"))) as server:
            context = replace(context, settings=replace(context.settings, models=model_at(server.url)))
            store, memory = (
                context.open_store(),
                GivenMemory("0" * 40, None, "active", "user", "Cranes are blue."),
            )
            answer_over(context, store, "global", f"question {next(replies)}", [memory], "reflect-1")

    def slow(context):
        client.perform(Caller("quick"), "reflect", {}, paid)
        paid(context)

    client.perform(Caller("slow"), "reflect", {}, slow)
    costs = {row["caller"]: row["usd"] for row in read_calls(assistant.context)}
    kept = Store(assistant.home).lake.read(REPLIES, "global").to_pylist()
    assert len(kept) == 2 and all(row["usd"] > 0 for row in kept)
    assert costs == {"quick": kept[0]["usd"], "slow": kept[1]["usd"]}


def test_the_log_is_a_table_that_sql_asks(assistant):
    assistant.call("recall", question="a question about Zanzibar")
    assistant.call("recall", colour="vermilion")
    sql = "select tool, outcome from calls order by outcome"
    assert assistant.data("query", sql=sql)["rows"] == []  # it shows what the last run took in
    Bench(assistant.home, assistant.home).run()
    rows = assistant.data("query", sql=sql)["rows"]
    assert sorted(rows) == [["query", "ok"], ["recall", "CORTEX_E202"], ["recall", "ok"]]


def test_over_http_only_an_admin_sees_the_calls_of_others(assistant):
    assistant.call("recall", question="a question about Zanzibar")
    Bench(assistant.home, assistant.home).run()
    (assistant.home / "config.toml").write_text('[mcp]\nhttp_projects = ["*"]\n')
    client = Client(assistant.context, "http", principal="ada")
    counted = lambda context: query_tables(context, "select count(*) from calls").rows[0][0]  # noqa: E731
    seen = {
        scope: client.perform(Caller("ada", frozenset((scope,))), "query", {}, counted)
        for scope in ("memory:read", "admin")
    }
    assert seen == {"memory:read": 0, "admin": 1}


def test_a_reset_and_the_end_of_retention_take_calls_with_them(assistant):
    bench = Bench(assistant.home, assistant.home)
    assistant.call("recall", question="cranes")
    project_id = read_calls(assistant.context)[0]["project_id"]
    bench.run()
    plan = forget.plan_reset(assistant.context, project_id)
    forget.reset(assistant.context, plan)
    assert read_calls(assistant.context) == []
    assistant.call("query", sql="select 1")
    (assistant.home / "config.toml").write_text("[retention]\ndays = 7\n")
    later = replace(assistant.context, clock=lambda: NOW + timedelta(days=30))
    later = replace(later, settings=load_settings(assistant.home))
    runs.execute("nightly", later)
    assert read_calls(assistant.context) == []
