"""Claude Code: whose records the reader itself knows."""

from cortex.transforms.transcripts.assistants.parsed_turn import Assistant

ASSISTANT = Assistant("claude", "Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ("projects",))
