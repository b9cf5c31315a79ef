"""Plans that live on: which lists of steps are one plan, and how far that plan is (spec 5.5)."""

from collections.abc import Iterable
from datetime import datetime

from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EPOCH, Row
from cortex.transforms.words.overlap import words_in

# Older finished steps only say that work went on; their number is kept.
DONE_STEPS_SHOWN = 3
# "Run tests" and "Fix lint" are in every other list; from three words on a step names its own work.
FEWEST_WORDS_OF_OWN = 3
APPROVED = " (approved). "  # between the title of an approved plan and what it says first
APPROVED_LAYER = "layer1:plan"


def subject_of(project_id: str, name: str) -> str:
    """
    Return the key by which a plan is known again in another session: of its title, or of its first step.

    >>> subject_of("p", "Ship  1.0") == subject_of("p", "ship 1.0")
    True
    """
    return content_id("plan", project_id, " ".join(name.lower().split()))


def carried_on(events: Iterable[Row]) -> dict[str, str]:
    """
    Return, by subject, the subject of the plan that it carries on; a subject that opens a plan is its own.

    Takes EVENTS rows of plans in any order. A list carries on the plan in which one of its steps was still
    open: a session that takes up three of five tasks goes on with the plan of the five, under whatever
    request it began. Of several such plans the one last worked on counts.
    """
    by_subject: dict[str, list[Row]] = {}
    for event in sorted(events, key=_order):
        by_subject.setdefault(str(event["subject"]), []).append(event)
    plan_of: dict[str, str] = {}
    open_in: dict[str, str] = {}
    for subject, its_events in by_subject.items():
        steps = {_key(event["text"]): event["step_status"] for event in its_events if event["step_status"]}
        held = [open_in[step] for step in steps if step in open_in]
        plan_of[subject] = held[-1] if held else subject
        for step, status in steps.items():
            if status == "completed" or len(step.split()) < FEWEST_WORDS_OF_OWN:
                open_in.pop(step, None)
            else:
                open_in[step] = plan_of[subject]
    return plan_of


def plan_text(events: Iterable[Row]) -> str:
    """
    Return one line that says where a plan stands, from the EVENTS rows of its lists in any order.

    Its title is the one a person approved last, else the first it was given. A step's last word on its
    status counts; open steps stand as they were first named, finished ones as they were finished. A plan
    without steps is its title and aim alone; one with all steps done says so.

    >>> place = {"event_id": "1", "layer": "layer1:plan", "said_at": None, "file": "f", "lines": [1]}
    >>> plan_text([{**place, "text": "Ship 1.0", "step_status": None}])
    'Plan: Ship 1.0.'
    """
    ordered = sorted(events, key=_order)
    steps: dict[str, tuple[str, str]] = {}
    for event in ordered:
        if event["step_status"]:
            step, status = _key(event["text"]), event["step_status"]
            # A finished step goes to the end of those finished before it; others keep their place.
            name, _ = steps.pop(step) if status == "completed" and step in steps else (event["text"], "")
            steps[step] = (name, status)
    named, aim = _title([event for event in ordered if not event["step_status"]])
    return " ".join([f"Plan: {named or 'work in progress'}.", *aim, *_progress(list(steps.values()))])


def _order(event: Row) -> tuple[datetime, str, list[int], str]:
    return (event["said_at"] or EPOCH, event["file"], event["lines"][:1], event["event_id"])


def _key(step: str) -> str:
    return " ".join(words_in(step))


def _title(headed: list[Row]) -> tuple[str, list[str]]:
    """Return the title of a plan and its aim, if it states one."""
    approved = [event["text"] for event in headed if event["layer"] == APPROVED_LAYER]
    text = approved[-1] if approved else next((event["text"] for event in headed), "")
    title, _, aim = text.removeprefix("Plan: ").partition(APPROVED)
    return title.rstrip("."), [f"Aim: {aim}"] if aim else []


def _progress(steps: list[tuple[str, str]]) -> list[str]:
    by_status = {
        status: [text.rstrip(".") for text, state in steps if state == status]
        for status in ("completed", "in_progress", "pending")
    }
    done, current, ahead = by_status["completed"], by_status["in_progress"], by_status["pending"]
    if steps and not current and not ahead:
        return [f"All {len(done)} steps done."]
    parts = []
    if done:
        older = f"{len(done) - DONE_STEPS_SHOWN} earlier; " if len(done) > DONE_STEPS_SHOWN else ""
        parts.append(f"Done: {older}{'; '.join(done[-DONE_STEPS_SHOWN:])}.")
    if current:
        parts.append(f"Now: {'; '.join(current)}.")
    if ahead:
        parts.append(f"Next: {'; '.join(ahead)}.")
    return parts
