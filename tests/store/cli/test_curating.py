"""Editing, pinning, superseding and indexing code: at once, in the journal, and the same after a rebuild."""

import os
import shutil
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc
import pytest

from cortex.cli.main import main
from cortex.storage.settings.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.memory.link import edges_between
from cortex.transforms.schemas import VECTORS
from tests.bench import Bench, kept
from tests.rows import memories as rows
from tests.rows import memory
from tests.unit.transforms.memory.test_link import MODEL, POLICY

CODE = "def kiln_curve(t):\n    if t > 3:\n        return t * 3\n"
PROSE = "Computes the firing curve; linear because the controller only ramps."


@pytest.fixture
def store(tmp_path, projects, monkeypatch) -> Store:
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "store"))
    here = projects.with_name("kiln")  # the same in every test: memories are of its project
    shutil.rmtree(here, ignore_errors=True)
    (here / "src").mkdir(parents=True)
    (here / "src" / "kiln.py").write_text(CODE)
    monkeypatch.chdir(here)
    return Store(tmp_path / "store")


@pytest.fixture
def indexed(cortex, store, projects) -> dict[str, Any]:
    """Return what indexing the code of an empty store answered."""
    words = ("index-code", "src/kiln.py", "--describe", PROSE, "--json")
    answer: dict[str, Any] = kept(Bench(store.home, projects), words, lambda bench: cortex(*words).json)
    return answer


@pytest.fixture
def doors(cortex, store, projects) -> tuple[str, str]:
    """Return the ids of a memory and of the one that superseded it."""

    def fill(bench: Bench) -> tuple[str, str]:
        old, new = remembered(cortex, "The door is red."), remembered(cortex, "The door is blue, not red.")
        cortex("supersede", old[:8], new[:8])
        return old, new

    ids: tuple[str, str] = kept(Bench(store.home, projects), "two doors", fill)
    return ids


def table(store: Store, name: str) -> list[dict[str, Any]]:
    return [
        row for scope in store.tables.scopes() for row in store.tables.open(scope, name).read().to_pylist()
    ]


def remembered(cortex, text: str, **options: str) -> str:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return str(cortex("remember", text, "--type", "decision", *words, "--json").json["id"])


def of_type(store: Store, memory_type: str) -> dict[str, Any]:
    [row] = [row for row in table(store, "memories") if row["memory_type"] == memory_type]
    return row


def test_code_is_never_embedded_and_never_in_a_brief(cortex, store, indexed):
    brief = cortex("brief").out
    assert "src/kiln.py: " in brief and "kiln_curve" not in brief
    hashes = set(Store(load_settings().home).lake.read(VECTORS)["content_hash"].to_pylist())
    assert of_type(store, "code_description")["content_hash"] in hashes
    assert of_type(store, "code")["content_hash"] not in hashes


@pytest.mark.parametrize(
    ("content", "describe", "code"),
    [
        (b"", PROSE, 2),
        (b"\xff\xfe", PROSE, 2),
        (b"x" * 200_001, PROSE, 2),
        (b"x = 1", "  ", 2),
        (None, PROSE, 5),
    ],
)
def test_what_cannot_be_indexed_is_refused(cortex, store, content, describe, code):
    path = Path("src/other.py")
    if content is not None:
        path.write_bytes(content)
    assert cortex("index-code", path, "--describe", describe, "--json").code == code
    assert table(store, "memories") == []


def test_no_pipe_no_device_and_no_link_out_of_a_repository_is_indexed(cortex, store, tmp_path):
    folder = tmp_path / "clone"
    (folder / ".git").mkdir(parents=True)
    os.mkfifo(folder / "pipe.py")
    for name, target in (("zero.py", "/dev/zero"), ("own.py", "/proc/self/environ"), ("key.py", "../key.py")):
        (folder / name).symlink_to(target)
    (tmp_path / "key.py").write_text("key = 1\n")
    with (folder / "holes.py").open("wb") as file:
        file.truncate(1 << 40)
    for path in (*folder.glob("*.py"), "/dev/zero", "/proc/self/environ"):
        assert cortex("index-code", path, "--describe", PROSE, "--json").code == 2
    assert table(store, "memories") == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["pin", "zzz"], 5),
        (["pin", "0123456789"], 5),
        (["edit", "0123456789", "x"], 5),
        (["supersede", "0123456789", "0123456789"], 5),
    ],
)
def test_an_id_that_names_nothing_is_an_error_with_a_next_step(cortex, store, words, code):
    answer = cortex(*words, "--json")
    assert answer.code == code and answer.json["error"]["next_step"]


def test_a_description_leads_to_the_code_of_its_own_file_alone():
    indexed = [
        memory(f"{kind}{file}", file, memory_type=kind, source_type="code_index", files=[file])
        for kind in ("code", "code_description")
        for file in ("a.py", "b.py")
    ]
    lone = memory("lone", "c.py", memory_type="code_description", source_type="code_index", files=["c.py"])
    edges = edges_between(rows(*indexed, lone), VECTORS.empty(), POLICY, MODEL)
    found = edges.filter(pc.equal(edges["edge_type"], "source_of")).to_pylist()
    assert {(edge["source_id"], edge["target_id"]) for edge in found} == {
        ("code_descriptiona.py", "codea.py"),
        ("code_descriptionb.py", "codeb.py"),
    }


def test_every_command_that_shapes_a_memory_speaks_json():
    assert all(
        "--json"
        in {
            option
            for parameter in main.get_command(click.Context(main), name).params
            for option in parameter.opts
        }
        for name in ("edit", "pin", "supersede", "index-code")
    )


def test_a_memory_whose_place_is_taken_is_not_confirmed_but_the_newer_one_named(cortex, doors):
    old, new = doors
    answer = cortex("confirm", new[:8], old[:8])
    assert answer.code == 2
    assert f"{new[:12]} has taken the place of {old[:12]}" in answer.err
    assert f"cortex confirm {new[:12]}" in answer.err
