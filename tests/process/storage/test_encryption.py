"""What is sealed comes back as it was at its own place with its own key, and no other way."""

import base64
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.lake import encryption, lake_files
from cortex.storage.lake.encryption import (
    EncryptionKey,
    decrypted_bytes,
    encrypted_bytes,
    make_key_file,
    new_key,
)
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Lake
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from cortex.transforms.errors import (
    CortexError,
    FileDamaged,
    KeyUnavailable,
    NotFound,
    UsageError,
)
from cortex.transforms.schemas import TURNS
from tests.examples import cases
from tests.rows import START, entry, turn, turns

KEY = EncryptionKey(bytes(range(32)))
CANARY = "the harbour master keeps two ledgers"


@pytest.fixture
def key(home: Path, tmp_path: Path) -> EncryptionKey:
    """Return the key of the test's store, in a file that its settings name."""
    home.mkdir()
    made = make_key_file(tmp_path / "key", home)
    ConfigFile(home).set(key_of("encryption.key_file"), str(tmp_path / "key"))
    return made


@pytest.fixture
def lake(home: Path, key: EncryptionKey) -> Lake:
    """Return a sealed lake with one turn in each of two projects."""
    made = Lake(home)
    with made.change() as change:
        change.append(TURNS, "reef-1", turns(turn(1, CANARY)))
    made.reencrypt(key)
    with made.change() as change:
        change.append(TURNS, "kelp-1", turns(turn(2, CANARY, project_id="kelp-1")))
    made.sweep()
    return made


def files(lake: Lake) -> list[Path]:
    return sorted(path for path in lake.root.rglob("*") if path.is_file())


@given(
    plain=st.binary(max_size=2_000), place=st.text(max_size=40), secret=st.binary(min_size=32, max_size=32)
)
@settings(deadline=None)
def test_what_is_sealed_comes_back_whole(plain: bytes, place: str, secret: bytes):
    sealed = encrypted_bytes(EncryptionKey(secret), plain, place)
    assert decrypted_bytes(EncryptionKey(secret), sealed, place) == plain
    assert encrypted_bytes(EncryptionKey(secret), plain, place) != sealed


@given(plain=st.binary(max_size=200), data=st.data())
@settings(deadline=None)
def test_any_flipped_bit_is_an_error(plain: bytes, data: st.DataObject):
    sealed = bytearray(encrypted_bytes(KEY, plain, "a"))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises((FileDamaged, KeyUnavailable)):
        decrypted_bytes(KEY, bytes(sealed), "a")


@cases("cut", [0, 5, 28, 29, 40, -1])
def test_a_cut_file_is_an_error(cut: int):
    with pytest.raises(FileDamaged):
        decrypted_bytes(KEY, encrypted_bytes(KEY, b"words", "a")[:cut], "a")


def test_another_place_and_another_key_are_errors():
    sealed = encrypted_bytes(KEY, b"words", "lake/a turns")
    with pytest.raises(FileDamaged, match="lake/b turns"):
        decrypted_bytes(KEY, sealed, "lake/b turns")
    with pytest.raises(KeyUnavailable, match=KEY.id):
        decrypted_bytes(new_key(), sealed, "lake/a turns")


def test_a_key_is_never_shown():
    assert "secret" not in repr(KEY)
    assert KEY.secret.hex() not in KEY.id


def test_a_sealed_lake_says_what_it_said_and_holds_no_word_in_clear(lake: Lake, home: Path):
    assert Lake(home).read(TURNS)["text"].to_pylist() == [CANARY] * 2
    assert Lake(home).read(TURNS, "reef-1", columns=["line"], sessions={"s1"})["line"].to_pylist() == [1]
    assert [path.suffix for path in files(lake)] == [".aes"] * 2
    assert not [
        path for path in files(lake) if CANARY.encode() in path.read_bytes() or b"PAR1" in path.read_bytes()
    ]


def test_sealing_and_opening_make_no_stage_work_again(lake: Lake, home: Path):
    before = Lake(home).fingerprint(TURNS)
    assert lake.reencrypt(None) == 2
    assert Lake(home).fingerprint(TURNS) == before
    lake.sweep()
    assert [path.suffix for path in files(lake)] == [".parquet"] * 2
    assert Lake(home).read(TURNS)["text"].to_pylist() == [CANARY] * 2


def test_sealing_twice_is_once(lake: Lake, home: Path, key: EncryptionKey):
    assert lake.reencrypt(key) == 0
    assert Lake(home).read(TURNS).num_rows == 2


@pytest.mark.parametrize("written", [0, 1, 2])
def test_killed_while_sealing_the_lake_is_as_it_was_and_sealing_again_ends_it(
    home: Path, key: EncryptionKey, monkeypatch: pytest.MonkeyPatch, written: int
):
    class Killed(BaseException):
        pass

    lake, real, left = Lake(home), lake_files.write_stored, [written]
    for number, name in enumerate(("reef-1", "kelp-1", "buoy-1")):
        with lake.change() as change:
            change.append(TURNS, name, turns(turn(number, CANARY, project_id=name)))
    before = Lake(home).read(TURNS)

    def dying(*arguments: Any) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("cortex.storage.lake.lake.write_stored", dying)
        with pytest.raises(Killed):
            lake.reencrypt(key)
    assert Lake(home).read(TURNS).equals(before)
    again = Lake(home)
    again.reencrypt(key)
    again.sweep()
    assert Lake(home).read(TURNS).equals(before)
    assert [path.suffix for path in files(again)] == [".aes"] * 3


def test_sealed_files_that_changed_places_are_refused(lake: Lake, home: Path):
    first, second = files(lake)
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)
    with pytest.raises(FileDamaged, match="changed, moved or cut"):
        Lake(home).read(TURNS)


def test_a_plain_file_in_the_place_of_a_sealed_one_is_refused(lake: Lake, home: Path, tmp_path: Path):
    plain = Lake(tmp_path / "other")
    with plain.change() as change:
        change.append(TURNS, "reef-1", turns(turn(1, "forged")))
    [forged] = files(plain)
    files(lake)[0].write_bytes(forged.read_bytes())
    with pytest.raises(FileDamaged):
        Lake(home).read(TURNS)


def test_without_its_key_nothing_is_read_or_written(lake: Lake, home: Path, tmp_path: Path):
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    (tmp_path / "key").unlink()
    locked = Lake(home)
    for attempt in (
        locked.check_key,
        lambda: locked.read(TURNS),
        lambda: Journal(home, locked).write(entry("pin", "reef-1", {}, recorded_at=START, memory_id="m")),
    ):
        with pytest.raises(KeyUnavailable, match="cannot be read"):
            attempt()
    with pytest.raises(KeyUnavailable), locked.change() as change:
        change.append(TURNS, "reef-1", turns(turn(3)))
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_with_another_key_nothing_is_read(lake: Lake, home: Path, tmp_path: Path):
    (tmp_path / "key").unlink()
    other = make_key_file(tmp_path / "key", home)
    with pytest.raises(KeyUnavailable, match=other.id):
        Lake(home).check_key()
    with pytest.raises(KeyUnavailable, match=other.id):
        Lake(home).read(TURNS)


def test_entries_that_wait_are_sealed_and_read(lake: Lake, home: Path):
    journal = Journal(home, lake)
    fact = {"text": CANARY, "memory_type": "pattern", "category": "project"}
    journal.write(entry("remember", "reef-1", fact, recorded_at=START, memory_id="m"))
    [waiting] = (home / "staging" / "journal").iterdir()
    assert CANARY.encode() not in waiting.read_bytes()
    assert journal.take_in() == 1
    assert CANARY in Journal(home, Lake(home)).read()["payload"].to_pylist()[0]


def test_a_damaged_waiting_entry_is_set_aside(lake: Lake, home: Path):
    journal = Journal(home, lake)
    journal.write(entry("pin", "reef-1", {}, recorded_at=START, memory_id="m"))
    [waiting] = (home / "staging" / "journal").iterdir()
    encrypted = waiting.read_bytes()
    waiting.write_bytes(encrypted[:-1] + bytes([encrypted[-1] ^ 1]))
    assert journal.take_in() == 0
    assert journal.quarantine_damaged() == [waiting]


def test_compaction_keeps_the_seal(lake: Lake, home: Path):
    lake.compact(TURNS, "reef-1")
    live = {path.name for path in files(lake) if path.name.startswith("00000004")}
    assert {Path(name).suffix for name in live} == {".aes"}
    assert not [path for path in files(lake) if CANARY.encode() in path.read_bytes()]


def test_a_key_file_is_its_owners_alone_and_never_in_the_store(home: Path, tmp_path: Path):
    home.mkdir()
    made = make_key_file(tmp_path / "key", home)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert make_key_file(tmp_path / "key", home) == made
    with pytest.raises(UsageError, match="is inside the store"):
        make_key_file(home / "runs" / ".." / "key", home)
    with pytest.raises(NotFound):
        make_key_file(tmp_path / "none" / "key", home)


@pytest.mark.parametrize("content", [b"", b"words", base64.b64encode(b"x" * 31), b"\xff\xfe"])
def test_a_file_that_holds_no_key_is_said_to_hold_none(home: Path, tmp_path: Path, content: bytes):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(KeyUnavailable, match="holds no key"):
        make_key_file(tmp_path / "key", home)


class Ring:
    """A keyring in memory, or one that refuses."""

    def __init__(self, refuses: bool = False) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.refuses = refuses

    def set_password(self, service: str, name: str, value: str) -> None:
        self.held[service, name] = value

    def get_password(self, service: str, name: str) -> str | None:
        if self.refuses:
            raise Refusal("locked: hunter2")
        return self.held.get((service, name))


class Refusal(Exception):
    """Stands for the library's own error."""


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    made = Ring()
    monkeypatch.setitem(sys.modules, "keyring", made)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "keyring.errors", SimpleNamespace(KeyringError=Refusal))  # type: ignore[arg-type]
    return made


def test_a_key_may_lie_in_the_keyring(home: Path, ring: Ring):
    key = encryption.make_in_keyring()
    assert encryption.find_key(home, key.id) == key
    with pytest.raises(KeyUnavailable, match="does not hold"):
        encryption.find_key(home, "00" * 8)


def test_a_locked_keyring_is_a_clear_error_that_quotes_nothing(home: Path, ring: Ring):
    ring.refuses = True
    with pytest.raises(KeyUnavailable, match="Refusal") as raised:
        encryption.find_key(home, "00" * 8)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("library", ["keyring", "cryptography.hazmat.primitives.ciphers.aead"])
def test_a_missing_library_says_how_to_get_it(home: Path, monkeypatch: pytest.MonkeyPatch, library: str):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(CortexError, match=r"\.\[encryption\]"):
        encrypted_bytes(
            encryption.find_key(home, "00" * 8), b"", ""
        ) if library == "keyring" else encrypted_bytes(KEY, b"", "")


def test_nothing_of_it_is_imported_without_a_sealed_file():
    import subprocess

    program = (
        "import sys, cortex.storage.store; "
        "print([m for m in sys.modules if m.split('.')[0] in ('cryptography', 'keyring')])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_sealed_file_that_is_gone_is_noticed_though_its_rows_are_in_memory(lake: Lake):
    assert lake.read(TURNS, "kelp-1").num_rows == 1
    [file] = lake.manifest.live("turns", "kelp-1")
    (lake.root / file.path).unlink()
    with pytest.raises(FileDamaged, match="is missing"):
        lake.read(TURNS, "kelp-1")
