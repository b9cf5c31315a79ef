"""Why something is so: the chain of decisions about a path or a subject, and what they rejected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cortex.flows.context.context import Context
from cortex.flows.operations.ask.reflect import (
    BY_RULES,
    CitedAnswer,
    CitedStatement,
    cited_answer,
)
from cortex.flows.operations.lookup.targets import is_memory_id, memory_by_id, scopes_of
from cortex.flows.recalling.recall_search import search_store
from cortex.storage.store import Store
from cortex.transforms.errors import EmptyQuestion, NotFound
from cortex.transforms.schemas import EDGES, MEMORIES
from cortex.transforms.search.index_text import query_terms
from cortex.transforms.views.inference import (
    Step,
    chain_of,
    looks_like_path,
    memories_about,
)

_NOT_ASKED = "no language model was asked: this is the chain as it is stored"
_NO_MODEL = "no language model is chosen: this is the chain as it is stored"


@dataclass(frozen=True)
class Inference:
    """
    The chain of decisions about a target, oldest first, and what it says in statements that cite it.

    `project_names` are by id. An empty chain: nothing that was kept is about the target.
    """

    target: str
    chain: Sequence[Step]
    narrative: CitedAnswer
    project_names: Mapping[str, str]


def infer(
    context: Context,
    target: str,
    *,
    project: str | None = None,
    all_projects: bool = False,
    limit: int = 20,
    narrated: bool = True,
) -> Inference:
    """
    Return why a path, a subject or a memory (by its id) is so, by at most `limit` decisions, the newest.

    A path is found by the files that memories name; a subject by its words, else by its meaning. What the
    decisions replaced and what replaced them belongs to the chain. Nothing is reinforced. Unless `narrated`
    no language model is asked. Raises
    EmptyQuestion, UnknownProject, NotFound for an empty store.
    """
    store, policy = context.open_store(), context.policy
    if not looks_like_path(target) and not query_terms(target, policy):
        raise EmptyQuestion(
            "the subject has no word to search for.", "Name a path or a subject: cortex infer auth"
        )
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {context.home} is empty.", "Fill it: cortex backfill")
    named = memory_by_id(context, store, target) if is_memory_id(target) else None
    scopes = scopes_of(context, store, project, all_projects=all_projects)
    if named is not None and named["project_id"] not in scopes:
        scopes = [*scopes, named["project_id"]]
    tables = [store.tables.open(scope, "memories").read() for scope in scopes]
    memories = pa.concat_tables([MEMORIES.empty().select(_read_columns(tables)), *tables])
    edges = pa.concat_tables([EDGES.empty(), *(store.tables.open(s, "edges").read() for s in scopes)])
    seeds = [named["memory_id"]] if named else memories_about(target, memories, policy)
    if not seeds and not looks_like_path(target):  # what is near a path in meaning is not about it
        seeds = _near_in_meaning(context, store, target, scopes)
    chain = chain_of(memories, edges, seeds, policy, limit=limit)
    names = {each.project_id: each.name for each in store.projects.all()}
    if not narrated:
        return Inference(target, chain, CitedAnswer(_statements(chain), BY_RULES, _NOT_ASKED), names)
    return Inference(target, chain, _narrative(context, store, scopes[0], target, chain), names)


def _read_columns(tables: Sequence[pa.Table]) -> list[str]:
    return tables[0].schema.names if tables else MEMORIES.arrow.names


def _near_in_meaning(context: Context, store: Store, target: str, scopes: Sequence[str]) -> list[str]:
    matches = search_store(
        store.tables,
        target,
        scopes=scopes,
        policy=context.policy,
        embedder=context.embedder(),
        limit=5,
        by_stretch=False,  # what stands near a decision in its session is not about the target
    )
    return [match.id for match in matches if match.kind == "memory"]


def _narrative(context: Context, store: Store, scope: str, target: str, chain: Sequence[Step]) -> CitedAnswer:
    if not chain or not context.settings.models.uses_replies:
        return CitedAnswer(_statements(chain), BY_RULES, _NO_MODEL)
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.operations.ask.answering import answer_over
    from cortex.transforms.writer.cited import INFER_PROMPT, GivenMemory

    given = [
        GivenMemory(
            step.memory_id,
            step.at,
            step.status,
            step.trust,
            step.text,
            step.reason,
            step.rejected,
            [(each.word, each.memory_id) for each in step.relations],
        )
        for step in chain
    ]
    written = answer_over(context, store, scope, target, given, INFER_PROMPT)
    if written.note:
        return CitedAnswer(_statements(chain), BY_RULES, written.note)
    return cited_answer(written.sentences, context.settings.models.writer_model)


def _statements(chain: Sequence[Step]) -> list[CitedStatement]:
    return [CitedStatement(_sentence(step), (step.memory_id,)) for step in chain]


def _sentence(step: Step) -> str:
    parts = [step.text]
    if step.reason and step.reason not in step.text:
        parts.append(f"Why: {step.reason}")
    if step.rejected and step.rejected not in step.text:
        parts.append(f"Rejected: {step.rejected}")
    return " ".join(part if part.endswith((".", "!", "?", "。")) else f"{part}." for part in parts)
