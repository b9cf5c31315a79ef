"""How far the reading of transcripts is, in bytes, for a progress bar."""

from collections.abc import Sequence

from cortex.flows.run.run import Run
from cortex.storage.ground.files import stored_name
from cortex.storage.staging.staging import Claim


class BytesShown:
    """How many bytes of transcripts are done, for a progress bar: half once read, whole once committed."""

    def __init__(self, run: Run, claims: Sequence[Claim]) -> None:
        cursors = run.store.lake.manifest.cursors
        self._show = run.progress
        self._sizes = {
            claim.transcript: claim.unread_bytes(cursors.get(stored_name(claim.transcript)))
            for claim in claims
        }
        self._total, self._read, self._taken_in = sum(self._sizes.values()), 0, 0

    def read(self, claim: Claim) -> None:
        """Count a transcript as read."""
        self._read += self._sizes[claim.transcript]
        self._advance()

    def take_in(self) -> None:
        """Count all that was read as committed."""
        self._taken_in = self._read
        self._advance()

    def _advance(self) -> None:
        if self._total:
            self._show("extract", (self._read + self._taken_in) // 2, self._total)
