"""`cortex recall` narrowed to days, a session, a branch or a file."""


def results(answer):
    return answer.json["results"]


def test_recall_is_narrowed_to_a_session(cortex, samples):
    every = results(cortex("recall", "why SQLite", "--project", "tidepool", "--json"))
    session = every[0]["evidence"][0]["session"]
    within = results(
        cortex("recall", "why SQLite", "--project", "tidepool", "--session", session[:8], "--json")
    )
    assert within and all(session in {e["session"] for e in each["evidence"]} for each in within)


def test_days_without_a_session_have_no_answer_and_say_so(cortex, samples):
    answer = cortex("recall", "why SQLite", "--project", "tidepool", "--until", "2001-01-01")
    assert (answer.code, answer.out) == (0, "")
    assert "Nothing found in project 'tidepool', until 2001-01-01" in answer.err


def test_where_nothing_is_of_the_days_that_a_question_names_others_are_shown_with_a_note(cortex, samples):
    answer = cortex("recall", "why", "SQLite", "on", "2001-01-01", "--project", "tidepool", "--json")
    assert results(answer) and answer.json["limits"] is None
    assert "Nothing was found since 2001-01-01, until 2001-01-01" in answer.err


def test_what_is_no_day_is_refused(cortex, samples):
    answer = cortex("recall", "why SQLite", "--since", "soon", "--json")
    assert answer.json["error"]["code"] == "CORTEX_E_USAGE"


def test_a_file_and_a_branch_narrow_too(cortex, samples):
    for option in (("--file", "no_such_file.py"), ("--branch", "no-such-branch")):
        assert results(cortex("recall", "why SQLite", "--project", "tidepool", *option, "--json")) == []


def test_where_we_stopped_is_told_by_the_records_of_the_sessions_the_newest_first(cortex, samples):
    rows = results(cortex("recall", "where did we stop?", "--project", "tidepool", "--json"))
    assert rows and {row["memory_type"] for row in rows} == {"outcome"}
    instants = [row["created_at"] for row in rows]
    assert instants == sorted(instants, reverse=True)
    unfinished = results(cortex("recall", "what is open?", "--project", "tidepool", "--json"))
    assert unfinished and all("Open: " in row["text"] for row in unfinished)


def test_with_a_subject_the_question_is_searched_for(cortex, samples):
    rows = results(cortex("recall", "what did we do about SQLite?", "--project", "tidepool", "--json"))
    assert {row["memory_type"] for row in rows} != {"outcome"}


def test_asked_how_the_command_that_was_run_stands_below(cortex, samples):
    def shown(question):
        rows = results(cortex("recall", question, "--project", "tidepool", "--json"))
        return [near["statement"] for row in rows for near in row["nearby"]]

    assert any(text.startswith("Ran `") for text in shown("how do I run the tests?"))
    assert not any(text.startswith("Ran `") for text in shown("why do the tests fail?"))
