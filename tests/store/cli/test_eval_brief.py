"""`cortex eval brief` compares the briefs of a store with ideal lines."""

import json


def written(tmp_path, *rows):
    path = tmp_path / "ideal.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return str(path)


def test_labels_that_cannot_be_read_say_what_is_wrong(cortex, samples, tmp_path):
    assert cortex("eval", "brief", "--labels", str(tmp_path / "none")).code != 0
    answer = cortex("eval", "brief", "--labels", written(tmp_path, "{}"))
    assert answer.code != 0 and "project, as_of and lines" in answer.err
