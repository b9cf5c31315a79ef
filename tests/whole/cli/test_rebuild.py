"""`cortex rebuild --check` exits with 12 and prints one JSON object; rebuilt, the store is clean."""

import shutil


def test_a_lost_table_is_found_by_the_check_and_comes_back(cortex, samples):
    shutil.rmtree(samples / "tables")
    check = cortex("rebuild", "--check", "--json")
    assert (check.code, check.json["clean"], check.json["error"]["code"]) == (12, False, "CORTEX_E_AUDIT")
    assert len(check.json["differences"]) > 0
    text = cortex("rebuild", "--check")
    assert text.code == 12 and "live missing, rebuilt there" in text.out and "differ from" in text.err
    assert cortex("rebuild", "--json").code == 0
    assert cortex("rebuild", "--check", "--json").json["clean"] is True
