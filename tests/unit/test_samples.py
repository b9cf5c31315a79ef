"""The sample sessions hold every shape that the demo and the tests count on (data/samples/README.md)."""

import json
import re
from collections import Counter
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "projects" / "-home-dev-tidepool"
Record = dict[str, object]
CUT_OFF = ("59362054", 21)  # session and line of the one malformed line


def parsed(path: Path) -> tuple[list[Record], list[int]]:
    """Return the records of a file and the numbers of the lines that are not JSON."""
    records, malformed = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"), start=1):
        try:
            records.append(json.loads(line))
        except ValueError:
            malformed.append(number)
    return records, malformed


FILES = {path: parsed(path) for path in sorted(SAMPLES.rglob("*.jsonl"))}
MAIN = {path.stem[:8]: records for path, (records, _) in FILES.items() if path.parent == SAMPLES}
ALL = [record for records, _ in FILES.values() for record in records]


def blocks(records: list[Record], kind: str) -> list[Record]:
    found = []
    for record in records:
        content = (record.get("message") or {}).get("content")
        found += [block for block in content if block["type"] == kind] if isinstance(content, list) else []
    return found


def calls(records: list[Record], tool: str) -> list[Record]:
    return [block for block in blocks(records, "tool_use") if block["name"] == tool]


def texts(records: list[Record]) -> str:
    return "\n".join(str(block["text"]) for block in blocks(records, "text"))


def results(records: list[Record], tool: str) -> list[str]:
    """Return the results of a tool's calls as text, in order."""
    ids = {call["id"] for call in calls(records, tool)}
    return [str(block["content"]) for block in blocks(records, "tool_result") if block["tool_use_id"] in ids]


def prompts(records: list[Record]) -> list[Record]:
    return [record for record in records if record.get("promptSource") == "typed"]


def attachments(records: list[Record]) -> Counter[str]:
    return Counter(str(record["attachment"]["type"]) for record in records if record["type"] == "attachment")


def test_every_line_but_one_is_json():
    assert {(path.stem[:8], number) for path, (_, lines) in FILES.items() for number in lines} == {CUT_OFF}


def test_there_are_six_sessions_and_a_subagent_of_one_project():
    assert len(MAIN) == 6
    assert [path.parent.name for path in FILES if path.parent != SAMPLES] == ["subagents"]
    assert {record["cwd"] for record in ALL if "cwd" in record} == {"/home/dev/tidepool"}


def test_each_session_names_itself_in_each_record():
    for path, (records, _) in FILES.items():
        owner = path.stem if path.parent == SAMPLES else path.parents[1].name
        assert {record["sessionId"] for record in records} == {owner}


def test_dates_lie_in_autumn_2026_and_rise():
    for session, records in MAIN.items():
        said_at = list(dict.fromkeys(str(record["timestamp"]) for record in records if "timestamp" in record))
        assert said_at == sorted(said_at), session
        assert "2026-09-01" < said_at[0] < said_at[-1] < "2026-11-01"


def test_every_uuid_is_unique_and_every_parent_is_known():
    for records, _ in FILES.values():
        uuids = [record["uuid"] for record in records if "uuid" in record]
        assert len(uuids) == len(set(uuids))
        assert {record["parentUuid"] for record in records if record.get("parentUuid")} <= set(uuids)


def test_every_call_has_its_result():
    for records, _ in FILES.values():
        called = {block["id"] for block in blocks(records, "tool_use")}
        assert called == {block["tool_use_id"] for block in blocks(records, "tool_result")}


def test_answers_are_one_block_a_record_and_share_a_message_id():
    answers = [record for record in ALL if record["type"] == "assistant"]
    assert {len(record["message"]["content"]) for record in answers} == {1}
    assert max(Counter(record["message"]["id"] for record in answers).values()) >= 5
    assert {block["thinking"] for block in blocks(ALL, "thinking")} == {""}


def test_client_records_stand_between():
    assert {"mode", "permission-mode", "last-prompt", "ai-title", "system", "attachment"} <= {
        str(record["type"]) for record in ALL
    }
    assert {"environment", "session_context", "plan_mode", "queued_command"} <= set(attachments(ALL))
    assert {"turn_duration", "away_summary", "local_command", "compact_boundary"} <= {
        str(record.get("subtype")) for record in ALL
    }


def test_a_question_is_answered():
    (answer,) = results(MAIN["80317db0"], "AskUserQuestion")
    assert answer.startswith("User has answered your questions: ")


def test_a_call_is_refused_with_the_users_words_and_one_without():
    with_words = [
        text for text in results(MAIN["80317db0"], "Bash") if "the user said:\nUse uv, not pip." in text
    ]
    without = [text for text in results(MAIN["59362054"], "Edit") if "STOP what you are doing" in text]
    assert (len(with_words), len(without)) == (1, 1)


def test_decisions_come_with_reasons_and_rejections():
    assert "We decided to use SQLite in WAL mode for the readings because" in texts(MAIN["80317db0"])
    assert "I decided against the web socket because" in texts(MAIN["1a08eead"])
    assert "We rejected the median filter because" in texts(MAIN["af5918fc"])


def test_three_tags_stand_at_the_start_of_a_line():
    tags = re.findall(r"^\[MEMORY: (\w+)\] \w", texts(ALL), re.MULTILINE)
    assert Counter(tags) == {"decision": 2, "gotcha": 1}


def test_a_plan_is_approved_and_its_tasks_go_over_a_compaction_and_further_sessions():
    records = MAIN["af5918fc"]
    assert results(records, "ExitPlanMode")[0].startswith("User has approved your plan.")
    (boundary,) = [n for n, record in enumerate(records) if record.get("subtype") == "compact_boundary"]
    assert records[boundary + 1]["isCompactSummary"] is True
    assert len(calls(records[:boundary], "TaskCreate")) == 5
    assert [len(calls(part, "TaskUpdate")) for part in (records[:boundary], records[boundary:])] == [3, 1]
    subjects = {str(call["input"]["subject"]) for call in calls(records, "TaskCreate")}
    for later in ("0211b581", "59362054"):
        assert subjects & {str(call["input"]["subject"]) for call in calls(MAIN[later], "TaskCreate")}


def test_tests_go_from_red_to_green_after_an_edit():
    for session in ("80317db0", "af5918fc", "59362054"):
        runs = [text for text in results(MAIN[session], "Bash") if " passed in " in text]
        red = next(n for n, text in enumerate(runs) if text.startswith("Exit code 1"))
        assert not runs[red + 1].startswith("Exit code")


def test_the_same_command_fails_and_then_succeeds():
    run = [call for call in calls(MAIN["1a08eead"], "Bash") if "--once" in str(call["input"]["command"])]
    assert len({str(call["input"]["command"]) for call in run}) == 1
    first, second = (
        text for text in results(MAIN["1a08eead"], "Bash") if "acme: " in text or "locked" in text
    )
    assert first.startswith("Exit code 1\n")
    assert "22 rows written" in second


def test_commits_are_named_by_result_and_operation():
    commits = [
        record["toolUseResult"]["gitOperation"]["commit"]["sha"]
        for records in MAIN.values()
        for record in records
        if isinstance(record.get("toolUseResult"), dict) and "gitOperation" in record["toolUseResult"]
    ]
    assert len(commits) == len(set(commits)) == 6


def test_a_subagent_reports_back():
    ((path, (records, _)),) = [(path, found) for path, found in FILES.items() if path.parent != SAMPLES]
    assert {record["isSidechain"] for record in records} == {True}
    assert {f"agent-{record['agentId']}" for record in records} == {path.stem}
    (report,) = results(MAIN[path.parents[1].name[:8]], "Agent")
    assert texts(records[-1:]) in report


def test_a_rewind_leaves_two_prompts_with_one_parent():
    parents = Counter(record["parentUuid"] for record in prompts(MAIN["0211b581"]))
    assert sorted(parents.values()) == [1, 2]


def test_a_resume_writes_records_again_under_new_uuids():
    records = [record for record in MAIN["150926fe"] if record["type"] == "assistant"]
    copies = Counter(
        (record["message"]["id"], json.dumps(record["message"]["content"])) for record in records
    )
    assert Counter(copies.values())[2] == 7
    assert {record["version"] for record in records} == {"2.1.330", "2.1.332"}


def test_the_made_up_token_stands_where_a_tool_showed_it_and_nowhere_else():
    token = re.compile(r"ACME_TOKEN=\S+")
    shown = [text for text in results(MAIN["150926fe"], "Bash") if token.search(text)]
    assert len(shown) == 2  # once, and once again by the resume
    assert not token.search(texts(ALL))


def test_programs_and_the_shell_speak_in_user_records():
    contents = [record["message"]["content"] for record in MAIN["59362054"] if record["type"] == "user"]
    for start in (
        "<task-notification>",
        "<bash-input>",
        "<bash-stdout>",
        "<local-command-caveat>",
        "<command-name>",
    ):
        assert any(isinstance(content, str) and content.startswith(start) for content in contents), start


def test_all_of_it_is_small():
    assert sum(path.stat().st_size for path in FILES) < 250_000
