"""The commands by section: where each is declared, and its line in `cortex --help`.

Printed by `make docs` from the modules in the folders of cortex/cli; change that, not this module.
"""

SECTIONS = {
    "Start": {
        "setup": ("cortex.cli.start.setup", "See what is there and get started."),
        "demo": (
            "cortex.cli.start.demo",
            "See everything at work on sample sessions; no real data is touched.",
        ),
        "install": ("cortex.cli.start.install", "Add the hooks to the client's settings."),
        "uninstall": ("cortex.cli.start.install", "Remove hooks and status line from the client's settings."),
        "mcp": ("cortex.cli.start.mcp", "Serve the memory to programs that speak MCP."),
        "statusline": ("cortex.cli.start.statusline", "Print one line on memories, capture and context."),
        "schedule": ("cortex.cli.start.schedule", "Let the nightly run start by itself."),
        "doctor": ("cortex.cli.start.doctor", "Check that everything needed is in place."),
        "completion": ("cortex.cli.start.completion", "Print the completion script for bash, zsh or fish."),
    },
    "Take in": {
        "backfill": ("cortex.cli.take_in.backfill", "Read old transcripts."),
        "run": ("cortex.cli.take_in.run", "Read what the hooks have staged."),
        "nightly": ("cortex.cli.take_in.run", "Read what is staged, age and merge memories, publish."),
        "index-code": ("cortex.cli.take_in.index_code", "Keep a description of a source file."),
        "import": ("cortex.cli.take_in.import_memories", "Read memories from a file."),
    },
    "Ask": {
        "recall": ("cortex.cli.ask.recall", "Search memories and past conversations."),
        "reflect": (
            "cortex.cli.ask.reflect",
            "Say what is open, contradictory or stale; answer with citations.",
        ),
        "infer": ("cortex.cli.ask.infer", "Say why something is so: decisions, and what they rejected."),
        "brief": ("cortex.cli.ask.brief", "Print what the assistant is given when a session starts."),
        "today": ("cortex.cli.ask.today", "Say what the last session did and left open."),
        "list": ("cortex.cli.ask.list", "List memories, the newest first."),
        "show": ("cortex.cli.ask.show", "Show one memory or session with all that is known of it."),
        "related": ("cortex.cli.ask.related", "Show what a memory is linked to, step by step."),
        "timeline": ("cortex.cli.ask.timeline", "List sessions with what came of each."),
        "status": (
            "cortex.cli.ask.status",
            "Show what is stored, what is waiting and how the last run went.",
        ),
        "explore": ("cortex.cli.ask.explore", "Look at everything in the browser, and mend it."),
        "serve": ("cortex.cli.ask.serve", "Show the history of runs in Prefect's pages."),
        "stats": ("cortex.cli.ask.stats", "Show figures by session and project."),
        "plan": ("cortex.cli.ask.plan", "Show what the language model would be asked, and its price."),
        "audit": ("cortex.cli.ask.audit", "Show what programs did through the MCP server."),
        "cost": ("cortex.cli.ask.cost", "Show what the language model has cost."),
        "report": ("cortex.cli.ask.report", "Report a month: decisions, corrections, what is open."),
        "sql": ("cortex.cli.ask.sql", "Query turns, events, memories, edges and the journal with DuckDB."),
    },
    "Shape": {
        "remember": ("cortex.cli.shape.remember", "Store a fact in your own words."),
        "learn": ("cortex.cli.shape.learn", "Store a lesson that passes a quality gate."),
        "edit": ("cortex.cli.shape.edit", "Change a memory's text."),
        "pin": ("cortex.cli.shape.edit", "Keep a memory from fading and merging."),
        "confirm": ("cortex.cli.shape.edit", "Say that a memory still holds."),
        "supersede": ("cortex.cli.shape.edit", "Replace one memory by another."),
        "review": ("cortex.cli.shape.review", "Settle contradictions, stale claims and proposed merges."),
        "consolidate": ("cortex.cli.shape.consolidate", "Merge memories that say the same, or undo that."),
        "checkpoint": ("cortex.cli.shape.consolidate", "Name this moment, to return to it."),
        "team": ("cortex.cli.shape.team", "Share memories with your team by git."),
        "push": ("cortex.cli.shape.push", "Share memories through a bucket or folder."),
        "pull": ("cortex.cli.shape.push", "Read what colleagues share there."),
        "forget": ("cortex.cli.shape.forget", "Erase a memory or a session."),
    },
    "Projects and settings": {
        "projects": ("cortex.cli.projects_and_settings.projects", "List, rename, merge and split projects."),
        "reset": ("cortex.cli.projects_and_settings.reset", "Erase everything about a project."),
        "config": ("cortex.cli.projects_and_settings.config", "Show and change settings."),
    },
    "Keep": {
        "backup": ("cortex.cli.keep.backup", "Write the store to one file."),
        "restore": ("cortex.cli.keep.backup", "Replace the store by a backup."),
        "export": ("cortex.cli.keep.export", "Write memories as JSON or Markdown."),
        "encrypt": ("cortex.cli.keep.encrypt", "Encrypt the lake on disk."),
        "decrypt": ("cortex.cli.keep.encrypt", "Write the lake unencrypted again."),
        "rebuild": ("cortex.cli.keep.rebuild", "Rebuild the tables from the lake, or check them."),
        "rederive": ("cortex.cli.keep.rederive", "Show what today's extractor would make of old sessions."),
        "eval": ("cortex.cli.keep.eval", "Measure Cortex against labels made by hand."),
    },
}
