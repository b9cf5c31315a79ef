"""
Envelope encryption of what is pushed: each object has a data key of its own, which the team's key wraps.

To rotate the team's key only the wrapped keys are written again; without it no version of an object opens.
"""

import base64
import json
from typing import Any

from cortex.storage.lake.encryption import (
    EncryptionKey,
    decrypted_bytes,
    encrypted_bytes,
    new_key,
)
from cortex.transforms.errors import FileDamaged, KeyUnavailable

ENVELOPE_FORMAT = "cortex-envelope"


def encrypted_object(key: EncryptionKey, plain: bytes, name: str) -> bytes:
    """Return an object encrypted with a new data key; it opens under its own name alone."""
    data_key = new_key()
    return _written(key, data_key, encrypted_bytes(data_key, plain, name), name)


def decrypted_object(key: EncryptionKey, content: bytes, name: str) -> bytes:
    """Return what was encrypted. Raises KeyUnavailable for another key, FileDamaged."""
    document = _document(content, name)
    data_key = _data_key(key, document, name)
    return decrypted_bytes(data_key, _bytes(document, "content", name), name)


def rewrapped_object(old: EncryptionKey, new: EncryptionKey, content: bytes, name: str) -> bytes:
    """Return an object under another team key; what it holds is not written again. Raises as opening."""
    document = _document(content, name)
    return _written(new, _data_key(old, document, name), _bytes(document, "content", name), name)


def is_envelope(content: bytes) -> bool:
    """Return whether an object says that it is an envelope."""
    try:
        return bool(json.loads(content)["format"] == ENVELOPE_FORMAT)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def wrapped_with(content: bytes, name: str) -> str:
    """Return the id of the team key that an object was wrapped with. Raises FileDamaged."""
    return str(_document(content, name)["key"])


def _written(key: EncryptionKey, data_key: EncryptionKey, encrypted: bytes, name: str) -> bytes:
    document = {
        "format": ENVELOPE_FORMAT,
        "version": 1,
        "key": key.id,
        "wrapped": base64.b64encode(encrypted_bytes(key, data_key.secret, _place(name))).decode(),
        "content": base64.b64encode(encrypted).decode(),
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _data_key(key: EncryptionKey, document: dict[str, Any], name: str) -> EncryptionKey:
    if document["key"] != key.id:
        raise KeyUnavailable(
            f"{name} is wrapped with the team key {str(document['key'])[:16]!r}, and yours is {key.id}.",
            "Ask your team for the key file, and name it: cortex config set share.key_file PATH",
        )
    return EncryptionKey(decrypted_bytes(key, _bytes(document, "wrapped", name), _place(name)))


def _place(name: str) -> str:
    return f"key of {name}"


def _document(content: bytes, name: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
        if document["format"] != ENVELOPE_FORMAT or document["version"] != 1 or "key" not in document:
            raise ValueError("another version")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(name) from error
    return dict(document)


def _bytes(document: dict[str, Any], field: str, name: str) -> bytes:
    try:
        return base64.b64decode(document[field], validate=True)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name) from error


def _damaged(name: str) -> FileDamaged:
    return FileDamaged(
        f"the object {name} is not as it was encrypted.", "Its member pushes it again: cortex push"
    )
