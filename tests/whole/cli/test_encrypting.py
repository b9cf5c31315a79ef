"""Encryption from the shell: on, off, and clear errors with a code if the key is not there."""

from pathlib import Path

import pytest

# Runs over the sample store.


def test_on_and_off_again(cortex, samples: Path, tmp_path: Path):
    told = cortex("encrypt", "--key-file", tmp_path / "key", "--json").json
    assert told["encrypted"] and told["files"] >= 4 and told["key_in"] == str(tmp_path / "key")
    assert told["key"] in cortex("doctor").out
    assert cortex("sql", "select count(*) from turns").code == 0
    assert cortex("encrypt", "--json").json["files"] == 0
    assert cortex("decrypt", "--json").json == {"encrypted": False, "files": told["files"]}
    assert not list(samples.rglob("*.aes"))


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "words",
    [("run", "--engine", "plain"), ("recall", "SQLite"), ("remember", "Use pnpm"), ("status",), ("decrypt",)],
)
def test_without_the_key_every_command_says_so(cortex, samples: Path, tmp_path: Path, words):
    cortex("encrypt", "--key-file", tmp_path / "key")
    (tmp_path / "key").unlink()
    answer = cortex(*words)
    assert answer.code == 16
    assert "CORTEX_E_KEY" in answer.err and "CORTEX_ENCRYPTION_KEY_FILE" in answer.err


def test_the_doctor_tells_that_the_key_is_gone(cortex, samples: Path, tmp_path: Path):
    cortex("encrypt", "--key-file", tmp_path / "key")
    (tmp_path / "key").unlink()
    answer = cortex("doctor", "--json")
    assert answer.code == 1
    [check] = [c for c in answer.json["checks"] if c["check"] == "encryption"]
    assert not check["ok"]


def test_a_key_in_the_store_is_refused(cortex, samples: Path):
    answer = cortex("encrypt", "--key-file", samples / "key")
    assert (answer.code, list(samples.rglob("*.aes"))) == (2, [])


def test_without_a_keyring_a_key_file_is_offered(cortex, samples: Path, monkeypatch: pytest.MonkeyPatch):
    import keyring
    from keyring.backends.fail import Keyring

    monkeypatch.setattr(keyring.core, "_keyring_backend", Keyring())
    answer = cortex("encrypt")
    assert answer.code == 16
    assert "--key-file PATH" in answer.err
