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
