"""Layer 1: todo lists, task tools and approved plans: which lists are one plan, and how far it is."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cortex.hooks.prose.own_prose import (
    CHECKBOX,
    EDIT_TOOLS,
    MIN_STEPS,
    SHELL_TOOLS,
    STEP_STATUSES,
    TASK_NUMBER,
    own_prose,
    without_pasted,
)
from cortex.transforms.extract.language.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.extract.language.statements import (
    MAX_CHARS,
    MIN_CHARS,
    cut_between,
    passages,
    plain,
    prose_blocks,
)
from cortex.transforms.extract.structural import LINES_KEPT, Call, calls_that_ran, input_of, objects_of
from cortex.transforms.extract.user_statements import TERSE_CHARS
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EPOCH, Row
from cortex.transforms.words.sentences import PROSE, latin_length, sentences, shortened, words_in

# -- Plans that live on: which lists of steps are one plan, and how far that plan is (spec 5.5).

# Older finished steps only say that work went on; their number is kept.
DONE_STEPS_SHOWN = 3
# "Run tests" and "Fix lint" are in every other list; from three words on a step names its own work.
MIN_WORDS_OF_OWN = 3
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
            if status == "completed" or len(step.split()) < MIN_WORDS_OF_OWN:
                open_in.pop(step, None)
            else:
                open_in[step] = plan_of[subject]
    return plan_of


def plan_continuity(events: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """
    Return, by session that carries on a plan, how many of its steps it leaves out and how many it does again.

    Takes EVENTS rows of one project's plans in any order. Left out is a step that was open and that the
    session's list names no more; done again one that an earlier session completed, and that is open now or
    was completed after the list was first seen.
    """
    ordered = sorted(events, key=_order)
    plan_of = carried_on(ordered)
    opened_at = {(e["session_id"], e["subject"]): e["lines"][:1] for e in ordered if not e["step_status"]}
    lists: dict[tuple[str, str], dict[str, Row]] = {}
    for event in ordered:
        if event["step_status"]:
            of_session = lists.setdefault((plan_of[event["subject"]], event["session_id"]), {})
            of_session[_key(event["text"])] = event
    is_done: dict[str, dict[str, bool]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for (plan, session_id), steps in lists.items():
        before = is_done.setdefault(plan, {})
        left_out = [step for step, was_done in before.items() if not was_done and step not in steps]
        redone = 0
        for step, event in steps.items():
            is_redone = event["lines"][:1] != opened_at.get((session_id, event["subject"]))
            redone += before.get(step, False) and (event["step_status"] != "completed" or is_redone)
        if before:
            so_far = counts.get(session_id, (0, 0))
            counts[session_id] = (so_far[0] + len(left_out), so_far[1] + redone)
        for step in left_out:
            del before[step]
        before.update({step: event["step_status"] == "completed" for step, event in steps.items()})
    return counts


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


_TITLE = re.compile(
    r"^\s*#{1,3}\s+(?:(?:implementation )?plan\s*(?:[:–—-]|(?:to|for|of)\b)\s*)?(.+?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
# A request in its sentence: after a courtesy, or opening with its verb.
_ASKED = re.compile(
    r"(?:\b(?:please(?: can you)?|(?:can|could|would) you(?: please| mind)?|let'?s|let us"
    r"|we (?:should|need to|want to|have to|could)|i(?:'d| would)? (?:want|need|like) (?:you )?to|i want)\s+"
    r"|^(?:(?:ok(?:ay)?|now|hey claude|so|and|then|great|perfect|yes|yes please),?\s+)*"
    r"(?=(?:add|fix|implement|create|make|set up|write|build|remove|rename|refactor|move|update|change"
    r"|replace|convert|migrate|support|improve|review|run|test|document|split|deploy|release|use|port|extend"
    r"|clean up|rework|finish|prepare|plan)\s))(.{8,})",
    re.IGNORECASE,
)
_COURTESY = re.compile(r"\b(?:can|could|would|will) you\b|\bplease\b|\blet'?s\b", re.IGNORECASE)
_DECLINES = re.compile(r"\b(?:do not|don'?t|not|never|why|how|whether|if|wonder|think)\b", re.IGNORECASE)
TITLE_CHARS = 120
# "for the" is in every other step; more than six words are a step itself.
_MIN_COMMON_WORDS, _MAX_COMMON_WORDS = 3, 6
_STEPS_COMPARED = 40
STEP_CHARS = 160


@dataclass
class Plan:
    """A list of steps as it stood last: status and the turn that set it, by the step's words."""

    opened: Turn
    title: str
    is_approved: bool
    steps: dict[str, tuple[str, Turn]] = field(default_factory=dict)
    # Whether a step was under way or done when the list was first seen: an earlier session began it.
    is_resumed: bool = False

    @property
    def is_done(self) -> bool:
        """Return whether every step is completed."""
        return bool(self.steps) and all(status == "completed" for status, _ in self.steps.values())


def plan_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """Yield the plans of one thread and their steps; `turns` as for `structural_candidates`."""
    for plan in [*_todo_plans(turns), *_task_plans(turns), *_checklists(turns)]:
        if len(plan.steps) >= MIN_STEPS:
            yield from _as_events(plan, phrases)
    yield from _approved(turns, phrases)


def _todo_plans(turns: Sequence[Turn]) -> list[Plan]:
    plans: list[Plan] = []
    for call in calls_that_ran(turns):
        items = _todos(call) if call.tool == "TodoWrite" and not call.failed else {}
        if not items:
            continue
        # A list without any item of the one before is a new plan.
        if not plans or not plans[-1].steps.keys() & items.keys():
            plans.append(Plan(call.turn, *_occasion(turns, call.turn)))
            plans[-1].is_resumed = "completed" in items.values()
        _rewrite(plans[-1], items, call.turn)
    return plans


def _todos(call: Call) -> dict[str, str]:
    """Return step → status of a call of TodoWrite; what has another shape than a list of steps gives none."""
    steps: dict[str, str] = {}
    for todo in objects_of(input_of(call.turn), "todos"):
        content, status = todo.get("content"), todo.get("status")
        if isinstance(content, str) and plain(content) and isinstance(status, str):
            steps[content.strip()] = status
    return steps


def _checklists(turns: Sequence[Turn]) -> list[Plan]:
    """Return the plans that the assistant keeps as `- [ ]` and `- [x]` lists in its text."""
    plans: list[Plan] = []
    for turn in turns:
        boxes = CHECKBOX.findall(own_prose(text_of(turn))) if turn["kind"] == "text" else []
        items = {step.strip(): "pending" if box == " " else "completed" for box, step in boxes if plain(step)}
        if len(items) < MIN_STEPS:
            continue
        if not plans or not plans[-1].steps.keys() & items.keys():
            plans.append(Plan(turn, *_occasion(turns, turn)))
            plans[-1].is_resumed = "completed" in items.values()
        _rewrite(plans[-1], items, turn)
    return plans


def _task_plans(turns: Sequence[Turn]) -> list[Plan]:
    """Return the plans that task tools made; a task made when all others are done opens a new plan."""
    plans: list[Plan] = []
    subjects: dict[str, tuple[Plan, str]] = {}
    for call in calls_that_ran(turns):
        given = input_of(call.turn) if call.tool in ("TaskCreate", "TaskUpdate") and not call.failed else {}
        subject = given.get("subject")
        if call.tool == "TaskCreate" and isinstance(subject, str) and plain(subject):
            if not plans or plans[-1].is_done:
                plans.append(Plan(call.turn, *_occasion(turns, call.turn)))
            subject = subject.strip()
            number = TASK_NUMBER.search(text_of(call.result))
            subjects[number[1] if number else str(len(subjects) + 1)] = (plans[-1], subject)
            _update(plans[-1], {subject: "pending"}, call.turn)
        elif isinstance(given.get("status"), str) and _task_id(given) in subjects:
            plan, subject = subjects[_task_id(given)]
            _update(plan, {subject: given["status"]}, call.turn)
    return plans


def _task_id(given: Mapping[str, object]) -> str:
    name = given.get("taskId")
    return str(name) if isinstance(name, str | int) else ""


def _rewrite(plan: Plan, items: dict[str, str], turn: Turn) -> None:
    """Take over a whole list: its steps in its order, then those that it names no more."""
    _update(plan, items, turn)
    named = {step: plan.steps[step] for step in items if step in plan.steps}
    plan.steps = {**named, **plan.steps}


def _update(plan: Plan, items: dict[str, str], turn: Turn) -> None:
    for step, status in items.items():
        if status == "deleted":
            plan.steps.pop(step, None)
        elif status in STEP_STATUSES and plan.steps.get(step, ("", None))[0] != status:
            plan.steps[step] = (status, turn)


def _occasion(turns: Sequence[Turn], opened: Turn) -> tuple[str, bool]:
    """
    Return what a list was opened for, and whether that is the title of a plan; a request ends a plan.

    Without a plan it is what a person asked for last, in their words.
    """
    place = next((at for at, turn in enumerate(turns) if turn is opened), len(turns))
    # Backwards from the list: read forwards, a long session's prompts are read again for each of its lists.
    for turn in reversed(turns[:place]):
        if turn["kind"] == "plan":
            title = plan_title(text_of(turn))
            return title, bool(title)
        if turn["kind"] in ("prompt", "command") and (asked := request(without_pasted(text_of(turn)))):
            return asked, False
    return "", False


# Said in one session, "Make it the same as those" means nothing above a list that is read in another.
_POINTS_BACK = re.compile(r"\b(?:it|its|this|that|these|those|them|above|same|we|you|i)\b", re.IGNORECASE)


def _stands_alone(title: str, phrases: Phrasebook) -> bool:
    """Return whether a request says what a plan is for: no step on the way, nothing that points back."""
    is_step = phrases.chore.search(title) or phrases.errand.search(title)
    return bool(title) and not is_step and not _POINTS_BACK.search(title)


def request(text: str) -> str:
    """
    Return what a prompt asks for as a title, or nothing if it only tells or agrees.

    >>> request("I am back. Can you please add tar support? It is for the nightly dumps.")
    'Add tar support'
    """
    parts = [
        sentence
        for block in prose_blocks(text.replace("\n", "\n\n"))[:3]
        for sentence in sentences(plain(block.text), PROSE)
    ]
    for sentence in parts:
        asked = _ASKED.search(sentence)
        if asked and latin_length(asked[1]) >= MIN_CHARS // 2 and _is_request(sentence, asked):
            return shortened(asked[1][:1].upper() + asked[1][1:].rstrip(" .!?:"), TITLE_CHARS)
    return ""


def _is_request(sentence: str, asked: re.Match[str]) -> bool:
    """Return whether a sentence asks for what `asked` holds; "Do we need it?", "I'd not drop it" do not."""
    is_question = sentence.endswith("?") and asked.start() == 0 and not _COURTESY.search(sentence)
    return not is_question and not _DECLINES.search(sentence[: asked.start(1)])


def plan_title(text: str) -> str:
    """
    Return the title of a plan document: its first heading, else its first sentence.

    >>> plan_title("# Plan: Add tar support\\n\\n## Overview")
    'Add tar support'
    """
    heading = _TITLE.search(text)
    if heading:
        return shortened(plain(heading[1]), TITLE_CHARS)
    first = prose_blocks(text)
    return shortened(sentences(plain(first[0].text), PROSE)[0], TITLE_CHARS) if first else ""


# A heading, item or row that opens with a file in backticks: "1. **`tide.py`** - new column".
_PLANNED_FILE = re.compile(
    r"^\s*(?:#{1,6}|[-*+]|\d+[.)]|\|)\s*(?:\d+[.)]\s*)?"
    r"(?:\**(?:files?|modify|update|edit|extend|create|add|new)\**:?\s+)?\**`([^`\s]*\w\.\w{1,8})(?::[\d-]+)?`",
    re.MULTILINE | re.IGNORECASE,
)
_SUBAGENT_TOOLS = frozenset(("Agent", "Task"))


def unchanged_files(turns: Sequence[Turn], calls: Sequence[Call]) -> list[str]:
    """
    Return the names of the files that approved plans list and that no call changed or named in a command.

    None of a plan without a file that was changed: it was not begun, or is about other work. None either
    where subagents worked after it, whose calls are in transcripts of their own.
    """
    unchanged: dict[str, None] = {}
    opened: dict[str, int] = {}
    for at, turn in enumerate(turns):
        if turn["kind"] != "plan":
            continue
        # A plan put again has been worked on since it was put first.
        since = opened.setdefault(plan_title(text_of(turn)), line_of(turn))
        if any(after["tool_name"] in _SUBAGENT_TOOLS for after in turns[at:]):
            continue
        follow = [call for call in calls if line_of(call.turn) > since and not call.failed]
        changed = {_file_name(call.argument) for call in follow if call.tool in EDIT_TOOLS}
        commands = "\n".join(call.argument for call in follow if call.tool in SHELL_TOOLS)
        names = [_file_name(path) for path in _PLANNED_FILE.findall(text_of(turn))]
        if not changed.isdisjoint(names):
            left = (name for name in names if name not in changed and name not in commands)
            unchanged.update(dict.fromkeys(left))
    return list(unchanged)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _as_events(plan: Plan, phrases: Phrasebook) -> Iterator[Candidate]:
    names = list(plan.steps)
    # What an earlier session began was not asked for in this one.
    is_asked = not plan.is_resumed and _stands_alone(plan.title, phrases)
    title = plan.title if plan.is_approved or is_asked else _common_subject(names)
    title = title or shortened(plain(names[0]), STEP_CHARS)
    subject = subject_of(str(plan.opened["project_id"]), plan.title if plan.is_approved else names[0])
    layer = f"layer1:{plan.opened['tool_name'] or 'checklist'}"
    # Begun and finished within one session it is history, which the session's record sums up.
    source = "done_plan" if plan.is_done and not plan.is_resumed else "open_plan"
    lines = dict.fromkeys([line_of(plan.opened), *(line_of(turn) for _, turn in plan.steps.values())])
    yield Candidate(
        plan.opened, tuple(lines)[:LINES_KEPT], f"Plan: {title}",
        "PLAN_CREATED", "progress", layer, source, "assistant", subject=subject,
    )  # fmt: skip
    for position, (name, (status, turn)) in enumerate(plan.steps.items(), start=1):
        yield Candidate(
            turn, (line_of(turn),), shortened(plain(name), STEP_CHARS), "PLAN_STEP_COMPLETED", "progress",
            layer, source, "assistant", subject=subject, step_status=status, position=position,
        )  # fmt: skip


def _common_subject(steps: Sequence[str]) -> str:
    """
    Return the longest run of words that more than half of the steps share, if it says anything.

    >>> _common_subject(["Read the tide table", "Sort the tide table by hour", "Run tests"])
    'The tide table'
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for step in steps[:_STEPS_COMPARED]:
        words = plain(step).split()
        runs = {
            tuple(words[start : start + length])
            for length in range(_MIN_COMMON_WORDS, _MAX_COMMON_WORDS + 1)
            for start in range(len(words) - length + 1)
        }
        counts.update(runs)
    shared = [run for run, count in counts.items() if count * 2 > len(steps)]
    best = max(shared, key=lambda run: (len(" ".join(run)), run), default=())
    text = " ".join(best).strip(" ,;:.")
    return text[:1].upper() + text[1:]


def _approved(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """Yield one event an approved plan: its title and what it says first."""
    seen: set[str] = set()
    for turn in turns:
        title = plan_title(text_of(turn)) if turn["kind"] == "plan" else ""
        if not title or title in seen:
            continue
        seen.add(title)
        parts = passages(text_of(turn), phrases)
        first = next((part.text for part in parts if latin_length(part.text) > TERSE_CHARS), "")
        yield Candidate(
            turn, (line_of(turn),), cut_between(f"Plan: {title}{APPROVED}{first}", MAX_CHARS),
            "PLAN_CREATED", "progress", APPROVED_LAYER, "approved_plan", "user",
            subject=subject_of(str(turn["project_id"]), title),
        )  # fmt: skip
