"""Policy tables: typed, closed, complete, and overridable row by row."""

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.errors import NotFound, SchemaMismatch, UnknownValue
from cortex.transforms.policy import BUILT_IN, MEMORY_TYPE_FLAGS, load_policy
from cortex.transforms.schemas import EDGE_TYPES, EVENT_TYPES, MEMORY_TYPES
from tests.examples import cases

POLICY = read_policy(None)
MORE = ("brief_place", *MEMORY_TYPE_FLAGS, *BUILT_IN["memory_types"])
NO_FLAGS = "".join(",false" if name.startswith("is_") else "," for name in MORE)


def texts(**changed):
    """Return the smallest policy that is complete, with some tables replaced."""
    made = {
        "memory_types": ",".join(("memory_type", "half_life_days", "brief_lines", "brief_section", *MORE))
        + "\n"
        + "".join(f"{name},7,10,Heading{NO_FLAGS}\n" for name in MEMORY_TYPES),
        "event_types": "event_type,salience,is_immortal,memory_type,tag,is_written\n"
        + "".join(f"{name},0.5,false,,,false\n" for name in EVENT_TYPES),
        "edge_types": "edge_type,is_symmetric\n" + "".join(f"{name},false\n" for name in EDGE_TYPES),
        "thresholds": "name,value,unit,why\nlimit,0.3,fraction,a test\n",
        "confidences": "source,confidence,why\ntag,1,told on purpose\n",
        "calibration": "model,zero_at,one_at,answer_cosine,answer_share\ntiny,0.4,1,0.5,0.5\n",
    }
    return made | changed


def test_the_packaged_tables_say_what_the_specification_says():
    assert column("memory_types", "half_life_days") == [None, None, 60, 45, 7, 14, 30, None, None]
    assert [POLICY.brief_lines(name) for name in MEMORY_TYPES] == [25, 25, 25, 20, 30, 9, 15, 10, 0]
    saliences = [0.9, 0.9, 0.85, 0.8, 0.75, 0.7, 0.7, 0.6, 0.85, 0.4, 0.3, 0.2]
    assert [POLICY.salience(name) for name in EVENT_TYPES] == saliences
    immortal = zip(column("event_types", "event_type"), column("event_types", "is_immortal"), strict=True)
    assert [name for name, is_immortal in immortal if is_immortal] == ["DECISION_MADE", "APPROACH_REJECTED"]
    symmetric = zip(column("edge_types", "edge_type"), column("edge_types", "is_symmetric"), strict=True)
    assert [name for name, is_symmetric in symmetric if is_symmetric] == ["relates_to", "contradicts"]


def column(table: str, name: str) -> list[object]:
    return POLICY.tables[table][name].to_pylist()


def test_every_threshold_has_a_unit_and_a_reason():
    rows = POLICY.tables["thresholds"].to_pylist()
    assert [row["name"] for row in rows if not (row["unit"].strip() and row["why"].strip())] == []


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("memory_types", f"opinion,7,10,Heading{NO_FLAGS}\n"),
        ("event_types", "DREAM_HAD,0.5,false,,,false\n"),
        ("edge_types", "likes,false\n"),
    ],
)
def test_a_type_outside_its_closed_set_is_an_error_that_names_the_allowed_ones(table, line):
    with pytest.raises(UnknownValue, match=rf"{table}.csv row \d+.*Allowed: "):
        load_policy(texts(**{table: texts()[table] + line}))


@cases("number", ["much", "0,3", "nan", "inf"])
def test_a_malformed_number_is_an_error_naming_file_row_and_column(number):
    broken = f'name,value,unit,why\nlimit,"{number}",fraction,a test\n'
    with pytest.raises(UnknownValue, match=r"thresholds.csv row 2, column value"):
        load_policy(texts(thresholds=broken))


def test_a_flag_is_true_or_false_and_nothing_else():
    with pytest.raises(UnknownValue, match=r"edge_types.csv row 9, column is_symmetric.*true, false"):
        load_policy(texts(edge_types=texts()["edge_types"] + "relates_to,yes\n"))


def test_a_missing_column_an_odd_row_and_a_repeated_key_are_errors():
    with pytest.raises(SchemaMismatch, match=r"calibration.csv has the columns"):
        load_policy(texts(calibration="model,zero_at\ntiny,0.4\n"))
    with pytest.raises(SchemaMismatch, match=r"thresholds.csv row 2 has 5 cells, needs 4"):
        load_policy(texts(thresholds="name,value,unit,why\nlimit,1,count,one, two\n"))
    with pytest.raises(SchemaMismatch, match=r"thresholds.csv row 3 repeats the key"):
        load_policy(texts(thresholds="name,value,unit,why\nlimit,1,count,a\nlimit,2,count,b\n"))


def test_a_missing_table_or_type_is_an_error():
    without = {stem: text for stem, text in texts().items() if stem != "calibration"}
    with pytest.raises(NotFound, match=r"calibration.csv is missing"):
        load_policy(without)
    with pytest.raises(NotFound, match=r"no row for 'code'"):
        load_policy(
            texts(memory_types=texts()["memory_types"].replace(f"code,7,10,Heading{NO_FLAGS}\n", "", 1))
        )


def test_an_override_replaces_its_row_and_leaves_the_others():
    own = {"thresholds": "name,value,unit,why\nlimit,0.9,fraction,mine\n"}
    base = texts(thresholds=texts()["thresholds"] + "other,2,count,a test\n")
    policy = load_policy(base, own)
    assert (policy.threshold("limit"), policy.threshold("other")) == (0.9, 2.0)


def test_an_override_of_something_that_does_not_exist_is_an_error():
    with pytest.raises(UnknownValue, match=r"Not a name in thresholds.csv: 'limmit'. Allowed: limit"):
        load_policy(texts(), {"thresholds": "name,value,unit,why\nlimmit,0.9,fraction,mine\n"})
    with pytest.raises(UnknownValue, match=r"Not a policy table: 'treshholds'"):
        load_policy(texts(), {"treshholds": "name,value,unit,why\n"})


def test_a_table_nobody_declared_is_typed_by_its_column_names():
    policy = load_policy(
        texts(markers="language,pattern,weight,is_strong,note\nen,we chose,.95,true,\nde,weil,.3,false,\n")
    )
    assert policy.tables["markers"].to_pylist()[0] == {
        "language": "en",
        "pattern": "we chose",
        "weight": 0.95,
        "is_strong": True,
        "note": "",
    }


def test_the_fingerprint_follows_every_cell_and_no_line_end():
    same = load_policy(texts(thresholds=texts()["thresholds"].replace("\n", "\r\n")))
    other = load_policy(texts(thresholds=texts()["thresholds"].replace("0.3", "0.31")))
    assert load_policy(texts()).fingerprint == same.fingerprint != other.fingerprint


def test_a_name_nobody_knows_is_never_a_silent_default():
    with pytest.raises(UnknownValue, match="Not a threshold: 'half_life'"):
        POLICY.threshold("half_life")
    with pytest.raises(UnknownValue, match="Not a calibrated model: 'word2vec'"):
        POLICY.calibration("word2vec")


def test_the_users_rows_are_read_from_the_home(tmp_path):
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "thresholds.csv").write_text(
        "name,value,unit,why\narchive_grace_days,28,days,slower\n", encoding="utf-8"
    )
    policy = read_policy(tmp_path)
    assert policy.threshold("archive_grace_days") == 28
    assert policy.threshold("prune_after_days") == POLICY.threshold("prune_after_days")
    assert policy.fingerprint != POLICY.fingerprint
    assert read_policy(tmp_path / "elsewhere").fingerprint == POLICY.fingerprint


def test_a_users_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "thresholds.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NotFound, match="cannot be read as text"):
        read_policy(tmp_path)
