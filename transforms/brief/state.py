"""Where the work stands: how the outcome record of a session reads in a brief (spec 11.2)."""

from cortex.hooks.plain import on_one_line
from cortex.transforms.brief.standing_alone import brief_wording, reason_not_alone
from cortex.transforms.brief.wording import provenance
from cortex.transforms.extract.outcome import outcome_parts
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row


def outcome_forms(row: Row, policy: Policy) -> tuple[str, ...]:
    """
    Return an outcome record as a list item, from full to short; nothing if none of it stands alone.

    Full: what was reached, and below it what is open. Short: what is open, else the first that was reached.
    What was asked for is left out: it is a request, and the record says what came of it.
    """
    text, tail = on_one_line(row["text"]), provenance(row)
    parts = outcome_parts(text) or {"outcome": text.rstrip(" .")}
    reached = _statements(parts.get("outcome", ""), policy)
    still_open = [part.strip() for part in parts.get("open", "").split("; ") if part.strip(" .…")]
    still_open = [part for part in still_open if not part.endswith("…")]
    if not reached and not still_open:
        return ()
    if not still_open:
        return tuple(dict.fromkeys((_item(reached, tail), _item(reached[:1], tail))))
    left = "; ".join(still_open)
    alone = f"- Open: {left}. {tail}"
    return (f"{_item(reached, tail)}\n  - open: {left}", alone) if reached else (alone,)


def _statements(text: str, policy: Policy) -> list[str]:
    parts = [brief_wording(part.strip(), policy) for part in text.split("; ") if part.strip()]
    return [part for part in parts if not reason_not_alone(part, policy)]


def _item(statements: list[str], tail: str) -> str:
    text = "; ".join(statements)
    text = text[:1].upper() + text[1:] if text[:8].isalpha() else text
    return f"- {text if text.endswith(('.', '!', '。')) else f'{text}.'} {tail}"
