"""The tools: as clients list them, what a call needs, and where each is declared.

Printed by `make docs` from the modules in cortex/mcp/tools; change that, not this module.
"""

MODULES_OF_TOOLS = {
    "recall": "cortex.mcp.tools.read_tools",
    "query": "cortex.mcp.tools.read_tools",
    "reflect": "cortex.mcp.tools.reasoning_tools",
    "infer": "cortex.mcp.tools.reasoning_tools",
    "learn": "cortex.mcp.tools.write_tools",
    "consolidate": "cortex.mcp.tools.write_tools",
}
# The scope of a call, and of one with an argument that needs another.
SCOPES_OF_TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "recall": ("memory:read", {}),
    "query": ("memory:read", {}),
    "reflect": ("memory:read", {}),
    "infer": ("memory:read", {}),
    "learn": ("memory:write", {}),
    "consolidate": ("memory:read", {"plan": "memory:delete"}),
}
TOOLS = (
    {
        "name": "recall",
        "title": "Recall what is known",
        "description": "Search this project's memory of past sessions: decisions, rejected options, gotchas, preferences. Ask before you decide or repeat work. Answers carry age, confidence, trust, evidence. An id as the question shows that entry whole.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "question": {"type": "string", "maxLength": 2000},
                "detail": {"enum": ["short", "full"]},
                "as_of": {"type": "string", "description": "YYYY-MM-DD: as known that day"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "project": {"type": "string"},
                "cursor": {"type": "string"},
            },
            "additionalProperties": False,
            "required": ["question"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "results": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "kind": {"enum": ["memory", "turn"]},
                            "type": {"type": ["string", "null"]},
                            "text": {"type": "string"},
                            "trust": {"enum": ["external", "tool", "assistant", "colleague", "user"]},
                            "status": {"enum": ["active", "superseded", "archived", "pruned"]},
                            "project": {"type": "string"},
                            "confidence": {"type": ["number", "null"]},
                            "age": {"type": "string"},
                            "doubt": {"type": ["string", "null"]},
                            "evidence": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "session": {"type": "string"},
                                        "file": {"type": "string"},
                                        "lines": {"type": "array", "items": {"type": "integer"}},
                                    },
                                },
                            },
                            "why": {"type": ["string", "null"]},
                            "rejected": {"type": ["string", "null"]},
                            "replaces": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
                                },
                            },
                            "nearby": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
                                },
                            },
                        },
                    },
                },
                "options": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"id": {"type": "string"}, "label": {"type": "string"}},
                    },
                },
                "cursor": {"type": ["string", "null"]},
            },
        },
        "annotations": {
            "title": "Recall what is known",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": "query",
        "title": "Query the memory with SQL",
        "description": "Run read-only SQL (DuckDB) on the memory: counts, timelines. Tables: memories, edges, sessions, projects, metrics, events, turns, passages, tool_calls, journal, calls. `describe memories` shows columns.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "sql": {"type": "string", "maxLength": 10000},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200},
            },
            "additionalProperties": False,
            "required": ["sql"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "columns": {"type": "array", "items": {"type": "string"}},
                "rows": {"type": "array", "items": {"type": "array"}},
                "is_cut": {"type": "boolean"},
            },
        },
        "annotations": {
            "title": "Query the memory with SQL",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": "reflect",
        "title": "Reflect on what is unsettled",
        "description": "List what is open, contradictory or stale in this project; with a question, also an answer that cites memories.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "question": {"type": "string", "maxLength": 2000},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "project": {"type": "string"},
                "cursor": {"type": "string"},
            },
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "points": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "kind": {"enum": ["open", "contradictory", "stale"]},
                            "texts": {"type": "array", "items": {"type": "string"}},
                            "reason": {"type": "string"},
                            "memory_ids": {"type": "array", "items": {"type": "string"}},
                            "project": {"type": "string"},
                        },
                    },
                },
                "answer": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "memory_ids": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
                "source": {"type": "string"},
                "note": {"type": "string"},
                "cursor": {"type": ["string", "null"]},
            },
        },
        "annotations": {
            "title": "Reflect on what is unsettled",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": "infer",
        "title": "Infer why something is so",
        "description": "Explain why code or a design is as it is: the chain of decisions about a file path, subject or memory id, with reasons and rejected options.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "target": {"type": "string"},
                "all": {"type": "boolean", "description": "every match, if the target means several"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "project": {"type": "string"},
            },
            "additionalProperties": False,
            "required": ["target"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "chain": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "type": {"type": "string"},
                            "text": {"type": "string"},
                            "reason": {"type": "string"},
                            "rejected": {"type": "string"},
                            "trust": {"enum": ["external", "tool", "assistant", "colleague", "user"]},
                            "status": {"enum": ["active", "superseded", "archived", "pruned"]},
                            "said_on": {"type": "string"},
                            "relations": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"relation": {"type": "string"}, "id": {"type": "string"}},
                                },
                            },
                        },
                    },
                },
                "narrative": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "memory_ids": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
                "source": {"type": "string"},
                "note": {"type": "string"},
                "options": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"id": {"type": "string"}, "label": {"type": "string"}},
                    },
                },
            },
        },
        "annotations": {
            "title": "Infer why something is so",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": "learn",
        "title": "Learn a lesson for good",
        "description": "Store one durable fact: a sentence that stands alone and says what holds, of what, and why. Saved only if an id comes back. Refused: questions, filler, secrets; against a decision only if the person agrees.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "maxLength": 2000},
                "type": {"enum": ["architecture", "decision", "pattern", "gotcha", "progress", "context"]},
                "evidence": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": 10,
                    "description": "files that show it",
                },
                "everywhere": {"type": "boolean", "description": "holds in every project"},
            },
            "additionalProperties": False,
            "required": ["text"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "id": {"type": "string"},
                "outcome": {"enum": ["learned", "reinforced", "reworded"]},
                "type": {"type": "string"},
                "text": {"type": "string"},
                "project": {"type": "string"},
                "contradicts": {"type": "array", "items": {"type": "string"}},
                "in_effect": {"type": "boolean"},
                "note": {"type": "string"},
            },
        },
        "annotations": {
            "title": "Learn a lesson for good",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": "consolidate",
        "title": "Consolidate duplicates",
        "description": "Plan the merging of memories that say the same; changes nothing and returns a plan id. Called with that plan, carries out exactly it. Originals are kept.",
        "inputSchema": {
            "type": "object",
            "properties": {"plan": {"type": "string", "description": "id of a plan that was shown"}},
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "notice": {"type": "string"},
                "plan": {"type": "string"},
                "merges": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "project": {"type": "string"},
                            "text": {"type": "string"},
                            "members": {"type": "array", "items": {"type": "string"}},
                            "texts": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
                "is_done": {"type": "boolean"},
                "in_effect": {"type": "boolean"},
                "note": {"type": "string"},
            },
        },
        "annotations": {
            "title": "Consolidate duplicates",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
)
