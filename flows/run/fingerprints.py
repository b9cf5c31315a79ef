"""Fingerprints of inputs: one value that changes whenever a scope's tables may come out differently."""

from collections.abc import Callable, Sequence
from datetime import datetime

from cortex.flows.embedders import INCOMPLETE, Embedding
from cortex.flows.run.source import ReadingSource, journal_parts_of, parts_of
from cortex.storage.lake.manifest import Makers
from cortex.storage.store import Store
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS

# Raise it when the code of a stage changes what it makes of the same inputs.
STAGES_VERSION = "15"


class Fingerprints:
    """Fingerprints of the inputs of one run."""

    def __init__(self, store: Store, policy: Policy, source: ReadingSource, embedding: Embedding) -> None:
        self._store, self._policy, self._source, self._embedding = store, policy, source, embedding

    def inputs(self, scope: str, also: Sequence[str] = ()) -> str:
        """Return the fingerprint of what a scope's tables are made from, once the entries `also` are in."""
        lake = self._store.lake
        parts = journal_parts_of(self._store, scope)
        entries = {name for part in parts for name in self._store.journal.entry_ids(part)}
        inputs = content_id(
            STAGES_VERSION,
            self._policy.fingerprint,
            *(
                lake.fingerprint(table, part)
                for part in ([None] if scope == GLOBAL_SCOPE else parts)
                for table in (TURNS, EVENTS)
            ),
            *parts[1:],
            *sorted({*entries, *also}),
        )
        noted = lake.notes.judged
        judged = [noted[part] for part in parts if part in noted]
        more = [*judged, *([self._source.stamp] if self._source.stamp else [])]
        return content_id(inputs, *more) if more else inputs

    def indexed(self, scope: str, forgotten: Sequence[str], *, is_complete: bool = True) -> str:
        """
        Return the fingerprint of what a scope's passages are made from, without the turns `forgotten`.

        Unless `is_complete`, they were made while vectors were missing.
        """
        basis = self._embedding.model + ("" if is_complete else INCOMPLETE)
        return content_id(self.inputs(scope), basis, *forgotten)

    def cut(self, parts: Sequence[str], forgotten: Sequence[str]) -> str:
        """Return the fingerprint of what passages of `parts` follow from besides their turns."""
        return content_id(
            STAGES_VERSION, self._policy.fingerprint, self._embedding.model, *parts, "", *forgotten
        )

    def folded(self) -> str:
        """Return the fingerprint of what folded memories follow from besides events and journal."""
        return content_id(STAGES_VERSION, self._policy.fingerprint)

    def linked(self, scope: str, also: Sequence[str] = ()) -> str:
        """Return the fingerprint of what a scope's edges and merges are made from."""
        return content_id(self.inputs(scope, also), self._embedding.basis(scope))

    def aged(self, scope: str, day: datetime) -> str:
        """Return the fingerprint of what a scope's aged memories are made from on a day, and its brief."""
        return self.aged_by_day(scope)(day, ())

    def aged_by_day(self, scope: str) -> Callable[[datetime, Sequence[str]], str]:
        """Return `aged` of a scope, as it is now, for any day and once more findings are journaled."""
        parts = journal_parts_of(self._store, scope)
        known = {name for part in parts for name in self._store.journal.finding_ids(part)}
        inputs, basis = self.inputs(scope), self._embedding.basis(scope)

        def of_day(day: datetime, more: Sequence[str]) -> str:
            return content_id(inputs, basis, day.isoformat(), *sorted({*known, *more}))

        return of_day

    def makers(self, scope: str) -> Makers:
        """Return what a scope's tables follow from besides the lake."""
        noted = self._store.lake.notes.extractors
        parts = noted if scope == GLOBAL_SCOPE else parts_of(self._store, scope)
        extractors = sorted({noted[part] for part in parts if part in noted})
        return Makers(self._policy.fingerprint, content_id(*extractors))
