"""`query`: SQL that only reads, within limits, on the rows that the caller may see."""

from tests.store.mcp.test_tools import error_of


def test_a_query_that_takes_long_is_stopped(assistant):
    (assistant.home / "policy").mkdir()
    (assistant.home / "policy" / "thresholds.csv").write_text(
        "name,value,unit,read_by,why\nmcp_query_seconds,1,seconds,mcp,a test has no five\n"
    )
    endless = "select count(*) from range(100000000000) a, range(1000) b"
    report = error_of(assistant.call("query", sql=endless))
    assert report["code"] == "CORTEX_E208" and "1 seconds" in report["message"]


def test_one_value_that_takes_gigabytes_is_not_made_and_the_next_query_is_answered(assistant):
    report = error_of(assistant.call("query", sql="select repeat('x', 2000000000)"))
    assert report["code"] in ("CORTEX_E_USAGE", "CORTEX_E208")
    assert not assistant.call("query", sql="select 1 as one").is_error


def test_a_value_of_megabytes_is_cut(assistant):
    reply = assistant.call("query", sql="select repeat('x', 5000000) as long")
    assert len(reply.content[0].text) < 20_000
