"""Whose words a tool brings in: a stranger's, or those of this machine's files and commands (spec 2)."""

from __future__ import annotations

import re

EXTERNAL_TOOLS = ("WebFetch", "WebSearch")
EXTERNAL_TOOL_PREFIX = "mcp__"
# Cortex's own answers are recognised as told, not as a stranger's.
OWN_TOOLS = "mcp__cortex"
SHELL_TOOLS = frozenset(("Bash", "PowerShell"))
READ_TOOLS = frozenset(("Read", "NotebookRead"))
EDIT_TOOLS = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
# What comes back says what was asked for, in the assistant's or the person's words.
ECHOING_TOOLS = EDIT_TOOLS | {"TodoWrite", "TaskCreate", "TaskUpdate", "ExitPlanMode", "AskUserQuestion"}
# Commands that bring in what others wrote.
_FETCHES = re.compile(
    r"(?:^|[\s;&|(`/])(?:curl|wget|https?|xh|lynx|w3m|links|aria2c|scp|rsync|ssh|ftp|nc|gh|glab|hub"
    r"|git (?:clone|fetch|pull|ls-remote)|(?:npm|pnpm|yarn) (?:view|info)|pip (?:show|download)|man)(?=\s|$)"
)
# Folders of what was not written here; a shell reads them as well as a tool.
_FOREIGN_FOLDER = re.compile(
    r"(?:^|[/\s\"'=])(?:node_modules|site-packages|dist-packages|vendor|third_party|bower_components|\.cargo"
    r"|\.venv|venv|Downloads|go/pkg/mod|tmp)/"
)


def trust_of_call(tool: str, argument: str) -> str | None:
    """
    Return `external` or `tool` for what a call brings in, None if the words are nobody else's.

    `argument` is the call's salient one: a command, a path. External are web pages, answers of MCP servers,
    what a command fetched, and files of dependencies, downloads and temporary folders.

    >>> trust_of_call("Bash", "curl -s example.org"), trust_of_call("Read", "README.md")
    ('external', 'tool')
    """
    if tool.startswith(OWN_TOOLS) or tool in ECHOING_TOOLS:
        return None
    if tool in EXTERNAL_TOOLS or tool.startswith(EXTERNAL_TOOL_PREFIX):
        return "external"
    is_fetched = tool in SHELL_TOOLS and _FETCHES.search(argument)
    is_foreign = tool in SHELL_TOOLS | READ_TOOLS and _FOREIGN_FOLDER.search(argument)
    return "external" if is_fetched or is_foreign else "tool"
