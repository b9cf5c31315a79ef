"""Secrets out of rows and lines that were put together from pieces without one: marked, or left out."""

from collections.abc import Iterable
from dataclasses import asdict, replace

import pyarrow as pa

from cortex.transforms.brief.explanation import EXPLANATION_VERSION, BriefChoices, Choice
from cortex.transforms.brief.render import lay_out
from cortex.transforms.redaction.redact import kinds_of_secret, redact
from cortex.transforms.schemas import Table

# Beginning of the reason of a line that was left out.
SECRET = "would show a secret"


def masked(rows: pa.Table, table: Table) -> pa.Table:
    """
    Return rows of `table` with secrets in their texts marked; their ids stay.

    Pieces that were redacted one by one may make a secret side by side ("Password" as a heading, the word
    below it), and what an earlier version stored was redacted by fewer rules.
    """
    for name in table.texts:
        texts = rows[name].to_pylist()
        clean = [redact(text)[0] if text else text for text in texts]
        if clean != texts:
            position = rows.schema.get_field_index(name)
            column = pa.array(clean, table.arrow.field(name).type)
            rows = rows.set_column(position, table.arrow.field(name), column)
    return rows


def without_secrets(choices: Iterable[Choice], *, project_name: str) -> list[Choice]:
    """
    Return the candidates of a brief with those left out that would show a secret, alone or side by side.

    Their text is not kept; the reason names the kind. The audit stops a brief with a secret in it: without
    this, one line would keep all others from ever being shown again.
    """
    kept = list(choices)
    while kinds := kinds_of_secret(lay_out(kept, project_name=project_name)):
        shown = [choice for choice in kept if choice.is_shown]
        # One whose text is a secret by itself; else what it takes to make one: the line that the brief
        # is clean without, or, of a secret in two lines, the later one.
        worst = next((choice for choice in shown if kinds_of_secret(choice.text)), None)
        worst = worst or _needed_for_secret(kept, shown, project_name)
        if worst is None:
            break
        left_out = replace(worst, text="", is_shown=False, reason=f"{SECRET}: {', '.join(kinds)}")
        kept = [left_out if choice is worst else choice for choice in kept]
    return kept


def explanation_document(choices: BriefChoices) -> dict[str, object]:
    """Return what is published; the text of a line that is left out and holds a secret is empty."""
    left_out = [
        replace(choice, text="") if kinds_of_secret(choice.text) else choice for choice in choices.left_out
    ]
    return {
        "version": EXPLANATION_VERSION,
        "candidates": choices.candidates,
        "shown": [asdict(choice) for choice in choices.shown],
        "left_out": [asdict(choice) for choice in left_out],
        "doubts": dict(choices.doubts),
    }


def _needed_for_secret(choices: list[Choice], shown: list[Choice], project_name: str) -> Choice | None:
    for candidate in reversed(shown):
        rest = [choice for choice in choices if choice is not candidate]
        if not kinds_of_secret(lay_out(rest, project_name=project_name)):
            return candidate
    return shown[-1] if shown else None
