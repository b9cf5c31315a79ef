"""A prompt of a language model as a versioned file: its instruction and the schema of the answer."""

from dataclasses import dataclass

# The newest version of the instruction for sessions; the older ones stay beside it.
SESSION_PROMPT = "session@2"


@dataclass(frozen=True)
class Prompt:
    """
    What a request of one purpose always says.

    `name` is the file's name and version (`session@1`). Its text never changes: replies are known by the hash
    of what was asked, and a better instruction is a new version. `schema` is canonical JSON.
    """

    name: str
    system: str
    schema: str

    @property
    def purpose(self) -> str:
        """What the prompt is for: its name without the version."""
        return self.name.partition("@")[0]


def version_of(name: str) -> int:
    """
    Return the version of a prompt, 0 for a name without one.

    >>> version_of("session@12")
    12
    """
    version = name.rpartition("@")[2]
    return int(version) if version.isascii() and version.isdigit() else 0
