"""The providers of language models: where each is declared, and how the settings' page names them.

Printed by `make docs` from the modules in flows/writers; change that, not this module.
"""

WRITER_MODULES = {"api": "cortex.flows.writers.anthropic_api", "claude": "cortex.flows.writers.claude_login"}
WRITER_WORDS = "none, api (a key, or another endpoint) or claude (your own Claude Code login)"
