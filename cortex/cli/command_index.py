"""The commands by section: where each is declared, and its line in `cortex --help`.

Printed by `make docs` from the modules in the folders of cortex/cli; change that, not this module.
"""

SECTIONS = {
    "Start": {
        "setup": ("cortex.cli.start.setup", "Set up Cortex and read your past sessions."),
        "demo": ("cortex.cli.start.setup", "Try Cortex on sample sessions; no real data is touched."),
        "install": ("cortex.cli.start.install", "Add the hooks to the client's settings."),
        "uninstall": ("cortex.cli.start.install", "Take back what setup put in place; the memory stays."),
        "mcp": ("cortex.cli.start.setup", "Serve the memory to programs that speak MCP."),
        "statusline": ("cortex.cli.start.install", "Print a status line: memories, capture and context."),
        "schedule": ("cortex.cli.start.install", "Schedule the nightly run."),
        "doctor": ("cortex.cli.start.setup", "Check that everything needed is in place."),
        "completion": ("cortex.cli.start.setup", "Print the completion script for bash, zsh or fish."),
    },
    "Ingest": {
        "backfill": ("cortex.cli.ingest.run", "Read old transcripts."),
        "run": ("cortex.cli.ingest.run", "Read the sessions that the hooks have staged."),
        "nightly": ("cortex.cli.ingest.run", "Read staged sessions, age and merge memories, publish."),
        "index-code": ("cortex.cli.ingest.run", "Store searchable descriptions of source files."),
        "import": ("cortex.cli.ingest.run", "Read memories from a file."),
    },
    "Ask": {
        "recall": ("cortex.cli.ask.recall", "Search memories and past conversations."),
        "reflect": (
            "cortex.cli.ask.reasoning",
            "List open, contradictory and stale points, or answer with citations.",
        ),
        "infer": (
            "cortex.cli.ask.reasoning",
            "Explain why: the decisions behind it, and the rejected alternatives.",
        ),
        "brief": ("cortex.cli.ask.recall", "Print the brief that the assistant gets when a session starts."),
        "today": ("cortex.cli.ask.browse", "Summarize the last session: what was done and what is open."),
        "list": ("cortex.cli.ask.browse", "List memories, the newest first."),
        "show": ("cortex.cli.ask.browse", "Show everything known about one memory or session."),
        "related": ("cortex.cli.ask.browse", "Show the memories linked to a memory."),
        "timeline": ("cortex.cli.ask.browse", "List sessions with their results."),
        "status": (
            "cortex.cli.ask.figures",
            "Show what is stored, what is waiting and how the last run went.",
        ),
        "explore": ("cortex.cli.ask.explore", "Browse and edit the store in your web browser."),
        "serve": ("cortex.cli.ask.explore", "Serve the flows with Prefect, and its page of past runs."),
        "stats": ("cortex.cli.ask.figures", "Show statistics by session and project."),
        "plan": ("cortex.cli.ask.figures", "Show pending language model requests and their price."),
        "audit": ("cortex.cli.ask.figures", "Show the log of calls to the MCP server."),
        "cost": ("cortex.cli.ask.figures", "Show language model costs."),
        "report": ("cortex.cli.ask.report", "Report on a month: decisions, corrections, open points."),
        "sql": ("cortex.cli.ask.browse", "Query turns, events, memories, edges and the journal with DuckDB."),
    },
    "Edit and share": {
        "remember": ("cortex.cli.edit_and_share.remember", "Store a fact in your own words."),
        "learn": ("cortex.cli.edit_and_share.remember", "Store a lesson, if it meets the quality rules."),
        "edit": ("cortex.cli.edit_and_share.remember", "Change a memory's text."),
        "pin": ("cortex.cli.edit_and_share.remember", "Protect a memory from fading and merging."),
        "confirm": ("cortex.cli.edit_and_share.remember", "Confirm that a memory still holds."),
        "supersede": ("cortex.cli.edit_and_share.remember", "Replace one memory with another."),
        "review": (
            "cortex.cli.edit_and_share.review",
            "Resolve contradictions, stale claims and proposed merges.",
        ),
        "consolidate": (
            "cortex.cli.edit_and_share.review",
            "Merge memories that say the same, or undo a merge.",
        ),
        "checkpoint": ("cortex.cli.edit_and_share.review", "Save a point that you can undo merges back to."),
        "team": ("cortex.cli.edit_and_share.team", "Share memories with your team through git."),
        "push": ("cortex.cli.edit_and_share.team", "Share memories through a bucket or folder."),
        "pull": ("cortex.cli.edit_and_share.team", "Read the memories that colleagues share there."),
        "forget": ("cortex.cli.edit_and_share.forget", "Erase a memory or a session."),
    },
    "Projects and settings": {
        "projects": ("cortex.cli.projects_and_settings.projects", "List, rename, merge and split projects."),
        "reset": ("cortex.cli.projects_and_settings.projects", "Erase everything about a project."),
        "config": ("cortex.cli.projects_and_settings.config", "Show and change settings."),
    },
    "Maintain": {
        "backup": ("cortex.cli.maintain.export", "Write the store to one file."),
        "restore": ("cortex.cli.maintain.export", "Replace the store with a backup."),
        "export": ("cortex.cli.maintain.export", "Write memories as JSON or Markdown."),
        "encrypt": ("cortex.cli.maintain.export", "Encrypt the lake on disk."),
        "decrypt": ("cortex.cli.maintain.export", "Write the lake unencrypted again."),
        "rebuild": ("cortex.cli.maintain.rebuild", "Rebuild the tables from the lake, or check them."),
        "rederive": (
            "cortex.cli.maintain.rebuild",
            "Show what the current extractor would make of old sessions.",
        ),
        "eval": ("cortex.cli.maintain.eval", "Measure Cortex against hand-made labels and tasks."),
    },
}
