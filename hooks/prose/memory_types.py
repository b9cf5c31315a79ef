"""Types of memory and event, and the names by which hooks, engine and programs know them.

Printed by `make docs` from data/reference/memory_types.csv and event_types.csv; change that, not this module.
"""

MEMORY_TYPES = (
    "architecture",
    "decision",
    "pattern",
    "gotcha",
    "progress",
    "outcome",
    "context",
    "code_description",
    "code",
)
EVENT_TYPES = (
    "DECISION_MADE",
    "APPROACH_REJECTED",
    "PLAN_CREATED",
    "PREFERENCE_NOTED",
    "ERROR_RESOLVED",
    "PLAN_STEP_COMPLETED",
    "KNOWLEDGE_ACQUIRED",
    "TASK_COMPLETED",
    "SESSION_OUTCOME",
    "FILE_MODIFIED",
    "FILE_EXPLORED",
    "COMMAND_RUN",
)
# What a line `[MEMORY: tag] text` reports: type of event, type of memory.
MEMORY_TAGS = {
    "architecture": ("KNOWLEDGE_ACQUIRED", "architecture"),
    "decision": ("DECISION_MADE", "decision"),
    "pattern": ("KNOWLEDGE_ACQUIRED", "pattern"),
    "gotcha": ("KNOWLEDGE_ACQUIRED", "gotcha"),
    "progress": ("TASK_COMPLETED", "progress"),
    "context": ("KNOWLEDGE_ACQUIRED", "context"),
    "rejected": ("APPROACH_REJECTED", "decision"),
    "plan": ("PLAN_CREATED", "progress"),
    "preference": ("PREFERENCE_NOTED", "pattern"),
    "error": ("ERROR_RESOLVED", "gotcha"),
    "learned": ("KNOWLEDGE_ACQUIRED", "context"),
}
# Tags that a language model may give to a fact of a session.
WRITTEN_TAGS = ("architecture", "decision", "pattern", "gotcha", "context", "rejected", "plan", "preference")
# Types of what somebody says; the others follow from a session or a file.
FACT_TYPES = ("architecture", "decision", "pattern", "gotcha", "progress", "context")
# Types of what a person settles by typing it; the rest are requests, questions and reports.
SETTLING_TYPES = ("decision", "pattern")
# Types that are shown to the assistant while it works.
SHOWN_TYPES = ("architecture", "decision", "pattern", "gotcha", "progress", "outcome", "context")
# What other tools call a type.
OTHER_NAMES = {
    "how-it-works": "architecture",
    "architectural_decision": "decision",
    "preference": "pattern",
    "convention": "pattern",
    "best_practice": "pattern",
    "bugfix": "gotcha",
    "error": "gotcha",
    "problem_solution": "gotcha",
    "warning": "gotcha",
    "feature": "progress",
    "refactor": "progress",
    "change": "progress",
    "task": "progress",
}
# Sections of the brief without an engine, in their order: heading, lines at most, tags.
BASIC_SECTIONS = (
    ("Where this stands", 2, ("plan",)),
    ("Decisions", 8, ("decision", "rejected")),
    ("Gotchas", 5, ("gotcha", "error")),
    ("Rules", 5, ("pattern", "preference")),
    ("How it is built", 5, ("architecture",)),
    ("Recent work", 4, ("progress",)),
    ("Context", 4, ("context", "learned")),
)
