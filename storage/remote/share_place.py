"""
A team's place: one encrypted object for each project and member, which this member alone writes, and a mark.

To rotate the team's key only the wrapped keys are written again; without it no version of an object opens.
"""

import base64
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cortex.storage.lake.encryption import (
    EncryptionKey,
    decrypted_bytes,
    encrypted_bytes,
    new_key,
    own_export_key,
)
from cortex.storage.remote.bucket import Bucket, bucket_at
from cortex.transforms.documents.team_memory import Members, Unusable, read_members
from cortex.transforms.errors import FileDamaged, KeyUnavailable, StoreUnreachable, UsageError
from cortex.transforms.identity import content_id

# -- Envelope encryption of what is pushed: each object has a data key of its own, which the team's key
# wraps.

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


_ROOT = "share"
_MARK = f"{_ROOT}/place.json"
_MEMBERS = f"{_ROOT}/members.json"
# Who may write it cannot be read from it any more.
_MEMBERS_AGAIN = (
    f"Whoever looks after the place removes {_MEMBERS} there; an admin then grants the roles again: "
    "cortex team grant MEMBER ROLE"
)
_MEMBER_DIGITS = 16


def member_id(home: str) -> str:
    """Return what tells this user's store from all others. Raises UsageError without the user's key."""
    key = own_export_key()
    if key is None:
        raise UsageError("your key cannot be written.", "Make ~/.config/cortex writable.")
    return content_id("member", key.hex(), home)[:_MEMBER_DIGITS]


@dataclass
class SharePlace:
    """The snapshots at a URI; every method raises StoreUnreachable if nothing answers."""

    uri: str
    member: str
    key: EncryptionKey | None = None
    _bucket: Bucket = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Open the place. Raises UsageError for a URI of another form."""
        self._bucket = bucket_at(self.uri)

    def check_initialised(self) -> None:
        """Raise StoreUnreachable if nobody ever pushed: an empty folder may be a drive that is away."""
        if self._bucket.read(_MARK) is None:
            raise StoreUnreachable(
                f"nothing was ever pushed to {self.uri}.",
                "Check share.place and that the drive is there; the first member begins with: cortex push",
            )

    def own(self, project_id: str) -> bytes | None:
        """Return this member's snapshot of a project; None without one."""
        return self._opened(self._name(project_id), self._bucket.read(self._name(project_id)))

    def own_projects(self) -> list[str]:
        """Return the projects of which this member has a snapshot there, sorted."""
        names = (name.split("/") for name in self._bucket.names(_ROOT + "/"))
        mine = f"{self.member}.json"
        return sorted(parts[1] for parts in names if len(parts) == 3 and parts[2] == mine)

    def others(self, project_id: str) -> dict[str, bytes | None]:
        """
        Return the snapshots of the other members of a project, by name; None for one that does not open.

        Raises KeyUnavailable if all are encrypted with a key that is not this member's.
        """
        names = sorted(self._bucket.names(f"{_ROOT}/{project_id}/"))
        wanted = [name for name in names if name.endswith(".json") and name != self._name(project_id)]
        contents: dict[str, bytes | None] = {}
        refusals: list[KeyUnavailable] = []
        for name in wanted:
            try:
                content = self._opened(name, self._bucket.read(name))
            except KeyUnavailable as error:
                refusals.append(error)
                contents[name] = None
            except FileDamaged:
                contents[name] = None
            else:
                if content is not None:
                    contents[name] = content
        if refusals and (self.key is None or len(refusals) == len(wanted)):
            raise refusals[0]
        return contents

    def put(self, project_id: str, content: bytes) -> None:
        """Write this member's snapshot of a project over the last one."""
        self._bucket.create(_MARK, b"{}\n")
        name = self._name(project_id)
        self._bucket.put(name, encrypted_object(self.key, content, name) if self.key else content)

    def remove(self, project_id: str) -> None:
        """Remove this member's snapshot of a project."""
        self._bucket.remove([self._name(project_id)])

    def check_key(self) -> None:
        """Raise KeyUnavailable where the team encrypts and this member has no key, or another."""
        key_ids = self._key_ids()
        if key_ids and (self.key is None or self.key.id not in key_ids.values()):
            name = next(iter(key_ids))
            self._opened(name, self._bucket.read(name))

    @property
    def is_encrypted(self) -> bool:
        """Whether anything there is encrypted."""
        return bool(self._key_ids())

    def members(self) -> Members | None:
        """Return who may do what; None if nobody ever said. Raises KeyUnavailable and FileDamaged."""
        try:
            content = self._opened(_MEMBERS, self._bucket.read(_MEMBERS))
        except FileDamaged as error:
            raise FileDamaged(error.problem, _MEMBERS_AGAIN) from error
        try:
            return None if content is None else read_members(content)
        except Unusable as error:
            raise FileDamaged(
                f"the members' file at {self.uri} cannot be read: {error}.", _MEMBERS_AGAIN
            ) from error

    def put_members(self, members: Members) -> None:
        """Write who may do what."""
        self._bucket.create(_MARK, b"{}\n")
        content = members.as_text().encode()
        self._bucket.put(_MEMBERS, encrypted_object(self.key, content, _MEMBERS) if self.key else content)

    def pushed(self) -> dict[str, list[str]]:
        """Return the projects that each member has a snapshot of, by member."""
        pushed: dict[str, list[str]] = {}
        for name in self._snapshots():
            _, project_id, file = name.split("/")
            pushed.setdefault(file.removesuffix(".json"), []).append(project_id)
        return pushed

    def remove_snapshots_of(self, member: str, project_ids: Iterable[str]) -> None:
        """Remove another member's snapshots of projects."""
        self._bucket.remove([f"{_ROOT}/{project_id}/{member}.json" for project_id in project_ids])

    def rewrap(self, new: EncryptionKey) -> tuple[int, list[str]]:
        """
        Wrap the data keys of all objects with another team key; return how many, and the names of the others.

        Objects in clear are encrypted where the team had no key before. Under a key anyone who can write
        there may have put them there, so they stay as they are, and unread; so does what is damaged or of
        another key. Repeated after a kill, it goes on with those that are left. Raises KeyUnavailable if this
        member's key opens none.
        """
        count, known = 0, 0
        skipped: list[str] = []
        refused: KeyUnavailable | None = None
        for name in [*self._snapshots(), _MEMBERS]:
            try:
                content = self._bucket.read(name)
                if content is None:
                    continue
                if is_envelope(content) and wrapped_with(content, name) == new.id:
                    known += 1
                    continue
                fresh = self._rewrapped(name, content, new)
            except KeyUnavailable as error:
                refused = error
                skipped.append(name)
            except FileDamaged:
                skipped.append(name)
            else:
                self._bucket.put(name, fresh)
                count += 1
        if refused is not None and not count and not known:
            raise refused
        return count, skipped

    def _rewrapped(self, name: str, content: bytes, new: EncryptionKey) -> bytes:
        if self.key is None and not is_envelope(content):
            return encrypted_object(new, content, name)
        self._opened(name, content)  # what does not open now is not what its member wrote
        return rewrapped_object(self.key or new, new, content, name)

    def _snapshots(self) -> list[str]:
        names = sorted(self._bucket.names(_ROOT + "/"))
        return [name for name in names if len(name.split("/")) == 3 and name.endswith(".json")]

    def _key_ids(self) -> dict[str, str]:
        """Return, by object, the id of the team key that it was wrapped with; of envelopes alone."""
        key_ids = {}
        for name in self._snapshots():
            with suppress(FileDamaged):  # of another form, or too large
                key_ids[name] = wrapped_with(self._bucket.read(name) or b"", name)
        return key_ids

    def _opened(self, name: str, content: bytes | None) -> bytes | None:
        """Return an object's content in clear. Raises KeyUnavailable, FileDamaged."""
        if content is None:
            return None
        if not is_envelope(content):
            if self.key is not None:  # whoever may write there could have put it there
                raise FileDamaged(f"{name} is not encrypted, though your team has a key.", "Push it again.")
            return content
        if self.key is None:
            raise KeyUnavailable(
                f"what is shared at {self.uri} is encrypted, and you have no key.",
                "Ask your team for the key file, and name it: cortex team key FILE",
            )
        return decrypted_object(self.key, content, name)

    def _name(self, project_id: str) -> str:
        return f"{_ROOT}/{project_id}/{self.member}.json"
