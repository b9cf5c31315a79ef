"""No made secret gets through, from hooks to backups; without redaction the same search finds them."""

from pathlib import Path

from benchmarks.canaries import Trip, without_redaction
from benchmarks.canary_kinds import KINDS


def test_no_canary_gets_into_a_file_or_a_request(tmp_path: Path):
    trip = Trip(tmp_path, KINDS[41:42], "plain").go()
    assert len(trip.planted) > 80 and trip.files > 120 and trip.requests > 40
    assert {trip.planted[number]: files for number, files in trip.in_files.items()} == {}
    assert {trip.planted[number] for number in trip.in_requests} == set()


def test_without_redaction_the_same_search_finds_them(tmp_path: Path):
    with without_redaction():
        found = Trip(tmp_path, KINDS[1::81], "plain").go()
    assert len({found.planted[number][0] for number in found.in_files}) > 30
    assert len({found.planted[number][0] for number in found.in_requests}) > 12
