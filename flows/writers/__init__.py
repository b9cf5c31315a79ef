"""Language models behind one small protocol: the hosted interface, and the person's own Claude Code login."""

from typing import Protocol

from cortex.transforms.writer.request import ModelRequest, Reply


class Writer(Protocol):
    """Answers requests one at a time; what it costs is reserved before and settled after by its caller."""

    name: str

    def ask(self, request: ModelRequest) -> Reply:
        """
        Return the answer to one request.

        Raises ModelUnavailable where none came and a later run may try again, ModelRefused where the same
        request would fail again.
        """
