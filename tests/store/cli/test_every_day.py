"""What one meets every day: other names, own data, where was looked, dull numbers."""

from datetime import UTC, datetime, timedelta

import pytest

from cortex.transforms.words.ages import age_of, ago
from tests.bench import SAMPLES
from tests.examples import cases


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("monitor.tokenThreshold", "statusline.warn_percent"),
        ("archive.autoOnCompact", "captured at every compaction"),
        ("lifecycle.archive_grace_days", "policy/thresholds.csv"),
        ("brief.tokns", "Did you mean brief.tokens?"),
    ],
)
def test_a_setting_of_another_name_leads_to_the_one_here(cortex, name, meant):
    answer = cortex("config", "set", name, "7")
    assert answer.code == 2 and meant in answer.err and len(answer.err) < 400


@pytest.mark.parametrize(
    ("word", "meant"), [("extract", "run"), ("generate", "brief"), ("lifecycle", "nightly"), ("save", "run")]
)
def test_a_command_of_another_name_leads_to_the_one_here(cortex, word, meant):
    assert f"Did you mean {meant}" in cortex(word).err


def test_a_negative_number_is_a_value_that_is_refused_as_any_other(cortex):
    answer = cortex("config", "set", "brief.tokens", "-5")
    assert answer.code == 2 and "Give a whole number from 0 to 3000" in answer.err


def test_an_export_makes_the_folder_that_it_is_to_lie_in(cortex, samples, tmp_path):
    file = tmp_path / "new" / "folder" / "own.json"
    assert cortex("export", str(file)).code == 0 and file.is_file()


def test_an_export_that_is_to_be_restored_is_pointed_to_import(cortex, samples, tmp_path):
    cortex("export", tmp_path / "own.json")
    answer = cortex("restore", tmp_path / "own.json")
    assert answer.code == 2 and f"cortex import {tmp_path / 'own.json'}" in answer.err


def test_words_that_no_memory_holds_are_answered_with_where_they_were_looked_for(cortex, samples):
    assert "no memory of any project holds all of these words" in cortex("forget", "purple walrus").err
    assert (
        "no memory of tidepool or for all" in cortex("forget", "--project", "tidepool", "purple walrus").err
    )


def test_a_store_that_is_not_encrypted_says_so(cortex, samples):
    assert cortex("decrypt").out == "The store is not encrypted: nothing to do.\n"


@cases(
    ("seconds", "words"),
    [(59, "just now"), (60, "1 min ago"), (29 * 60, "29 min ago"), (3_600, "1 hour ago")],
)
def test_just_now_is_less_than_a_minute(seconds, words):
    now = datetime(2026, 9, 1, 12, tzinfo=UTC)
    assert ago(now - timedelta(seconds=seconds), now) == words
    assert age_of(now - timedelta(seconds=seconds), now) == words.removesuffix(" ago")


def test_transcripts_in_a_linked_project_folder_are_found_once(cortex, tmp_path):
    real, folder = tmp_path / "disk" / "kiln", tmp_path / "projects"
    real.mkdir(parents=True)
    folder.mkdir()
    path = next(SAMPLES.rglob("*.jsonl"))
    (real / path.name).write_bytes(path.read_bytes())
    (folder / "kiln").symlink_to(real)
    (folder / "all").symlink_to(folder)
    assert cortex("backfill", folder, "--dry-run", "--json").json["would_read"]["transcripts"] == 1
