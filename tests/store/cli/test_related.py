"""`cortex related` walks the links of a memory."""


def test_a_limit_says_how_many_it_left_out(cortex, samples):
    listed = cortex("list", "--project", "tidepool", "--json").json["memories"]
    answers = (cortex("related", row["memory_id"], "--steps", "4", "--json").json for row in listed)
    linked = next(answer for answer in answers if len(answer["related"]) > 1)
    answer = cortex("related", linked["memory"]["memory_id"], "--steps", "4", "--limit", "1")
    assert f"{len(linked['related']) + linked['left_out'] - 1} more" in answer.err


def test_what_is_no_memory_is_not_found(cortex, samples):
    assert cortex("related", "ffffffffffff", "--json").json["error"]["code"] == "CORTEX_E_NOT_FOUND"
