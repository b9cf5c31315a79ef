"""A team's place: one object for each project and member, which this member alone writes, and a mark."""

from dataclasses import dataclass, field

from cortex.storage.export_key import own_export_key
from cortex.storage.remote.bucket import Bucket, bucket_at
from cortex.transforms.errors import StoreUnreachable, UsageError
from cortex.transforms.identity import content_id

_ROOT = "share"
_MARK = f"{_ROOT}/place.json"
_MEMBER_DIGITS = 16


def member_id(home: str) -> str:
    """Return what tells this user's store from all others. Raises UsageError without the user's key."""
    key = own_export_key()
    if key is None:
        raise UsageError("your key cannot be written.", "Make ~/.config/cortex writable.")
    return content_id("member", key.hex(), home)[:_MEMBER_DIGITS]


@dataclass
class SharePlace:
    """The snapshots at a URI; every method raises StoreUnreachable where nothing answers."""

    uri: str
    member: str
    _bucket: Bucket = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Open the place. Raises UsageError for a URI of another form."""
        self._bucket = bucket_at(self.uri)

    def check_mark(self) -> None:
        """Raise StoreUnreachable where nobody ever pushed: an empty folder may be a drive that is away."""
        if self._bucket.read(_MARK) is None:
            raise StoreUnreachable(
                f"nothing was ever pushed to {self.uri}.",
                "Check share.place and that the drive is there; the first member begins with: cortex push",
            )

    def own(self, project_id: str) -> bytes | None:
        """Return this member's snapshot of a project; None without one."""
        return self._bucket.read(self._name(project_id))

    def own_projects(self) -> list[str]:
        """Return the projects of which this member has a snapshot there, sorted."""
        names = (name.split("/") for name in self._bucket.names(_ROOT + "/"))
        mine = f"{self.member}.json"
        return sorted(parts[1] for parts in names if len(parts) == 3 and parts[2] == mine)

    def others(self, project_id: str) -> dict[str, bytes]:
        """Return the snapshots of the other members of a project, by name."""
        names = sorted(self._bucket.names(f"{_ROOT}/{project_id}/"))
        wanted = [name for name in names if name.endswith(".json") and name != self._name(project_id)]
        contents = ((name, self._bucket.read(name)) for name in wanted)
        return {name: content for name, content in contents if content is not None}

    def put(self, project_id: str, content: bytes) -> None:
        """Write this member's snapshot of a project over the last one."""
        self._bucket.create(_MARK, b"{}\n")
        self._bucket.put(self._name(project_id), content)

    def remove(self, project_id: str) -> None:
        """Remove this member's snapshot of a project."""
        self._bucket.remove([self._name(project_id)])

    def _name(self, project_id: str) -> str:
        return f"{_ROOT}/{project_id}/{self.member}.json"
