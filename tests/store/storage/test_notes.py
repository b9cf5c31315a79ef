"""The manifest's notes: typed here, in the file the text that every version so far has written."""

import json

import pytest

from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import (
    Cut,
    Makers,
    ManifestNotes,
    Output,
    PromptChoice,
    RefusedLoss,
    read_manifest,
    write_manifest,
)
from cortex.transforms.errors import ManifestDamaged
from cortex.transforms.memory.loss import Loss

NOTES = ManifestNotes(
    outputs={
        Output("decay", "reef-1"): "d",
        Output("publish", "all"): "p",
        Output("judge", "global"): "s",
    },
    empty={Output("link", "reef-1"): "l"},
    briefs={"reef-1": "b"},
    makers={"reef-1": Makers("policy", "extractors")},
    cuts={
        Output("embed", "reef-1"): Cut("out", "basis", 12, "files", ("/t/s1.jsonl",), "content"),
        Output("decay", "reef-1"): Cut("out", "basis", 13, "files", (), "content"),
    },
    extractors={"reef-1": "x"},
    declined={"reef-1": "y"},
    grown={"reef-1": ("s1", "s2")},
    replaced_by_model={"reef-1": 5},
    consolidated_sessions={"reef-1": 7},
    prompts={"all": PromptChoice("session@1", "session@2")},
    retained="0123456789abcdef",
    to_wipe=("global", "reef-1"),
    encrypted_with="k",
    refused_loss=RefusedLoss("memories", 1, 2, "why", (Loss("reef-1", 1, 2),)),
)
TEXTS = {
    "brief:reef-1": "b",
    "consolidated_sessions:reef-1": "7",
    "cut:reef-1": '["out", "basis", 12, "files", ["/t/s1.jsonl"], "content"]',
    "decay:reef-1": "d",
    "declined:reef-1": "y",
    "empty_link:reef-1": "l",
    "extract:reef-1": "x",
    "fold:reef-1": '["out", "basis", 13, "files", [], "content"]',
    "given_way:reef-1": "5",
    "grown:reef-1": '["s1", "s2"]',
    "retained": "0123456789abcdef",
    "loss": '{"lost": 1, "scopes": [{"lost": 1, "scope": "reef-1", "shown": 2}], "shown": 2, '
    '"what": "memories", "why": "why"}',
    "judge:global": "s",
    "made_by:reef-1": "policy:extractors",
    "prompt:all": "session@1:session@2",
    "publish:all": "p",
    "sealed_with": "k",
    "to_wipe": '["global", "reef-1"]',
}


def test_each_kind_of_note_has_its_text_in_order_of_names():
    assert NOTES.as_texts() == TEXTS
    assert list(NOTES.as_texts()) == sorted(TEXTS)
    assert ManifestNotes.of_texts(TEXTS) == NOTES


def test_a_manifest_read_and_written_has_the_same_bytes(home):
    lake = Lake(home)
    lake.note(NOTES)
    before = lake.manifest_path.read_bytes()
    write_manifest(lake.manifest_path, read_manifest(lake.manifest_path))
    assert lake.manifest_path.read_bytes() == before


def test_what_is_noted_already_is_not_committed_again(home):
    lake = Lake(home)
    lake.note(NOTES)
    lake.note(ManifestNotes.of_texts(TEXTS))
    assert lake.manifest.generation == 1


def test_notes_of_nothing_as_earlier_versions_wrote_them_are_read():
    assert ManifestNotes.of_texts({"to_wipe": "[]", "retained": ""}) == ManifestNotes()


def test_a_note_by_a_name_of_another_version_is_left_out():
    assert ManifestNotes.of_texts({"polish:reef-1": "x", "polish": "y"}) == ManifestNotes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("to_wipe", "reef-1"),
        ("to_wipe", '{"a": 1}'),
        ("grown:reef-1", "[1]"),
        ("consolidated_sessions:reef-1", "many"),
        ("loss", "{}"),
        ("loss", "[" * 100_000),
    ],
)
def test_a_note_of_another_form_is_damage(home, name, text):
    lake = Lake(home)
    lake.note(NOTES)
    content = json.loads(lake.manifest_path.read_bytes())
    content["stages"][name] = text
    lake.manifest_path.write_text(json.dumps(content))
    with pytest.raises(ManifestDamaged):
        read_manifest(lake.manifest_path)


def test_projections_are_forgotten_and_what_is_truth_is_not():
    left = NOTES.without_projections()
    kept = {
        name: text
        for name, text in TEXTS.items()
        if name.split(":")[0] not in ("decay", "publish", "brief", "made_by", "cut", "fold")
    }
    assert left.as_texts() == kept
    assert NOTES.without_projections(["kelp-1"]) == NOTES
