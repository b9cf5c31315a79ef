"""Only storage knows where the store keeps what, and only three of its modules know LanceDB."""

import re

from tests.store.storage.test_paths_stay_in_storage import ROOT, modules, names


def test_lancedb_is_known_to_what_writes_names_and_finds_its_datasets_alone():
    named = {
        path.relative_to(ROOT).as_posix()
        for room in ("flows", "cortex", "storage", "transforms", "hooks")
        for path in modules(room)
        if any(LANCE.search(name) for name in names(path))
    }
    known = {
        "storage/tables/lance_tables.py",  # imports it, without what costs most of that import
        # what a table is replaced and brought up to date by
        # looks for a dataset's folder where importing what reads it costs too much
        "storage/tables/search_file.py",
        "storage/remote/store_copy.py",  # brings a copy's index in step with the datasets that came
        "storage/store.py",
    }
    # The command `doctor` prints the versions of libraries.
    assert named - {"cortex/cli/start/setup.py", "flows/operations/maintain/doctor.py"} == known


LANCE = re.compile(r"(?<![a-z])lance(db)?(?![a-z])", re.IGNORECASE)
