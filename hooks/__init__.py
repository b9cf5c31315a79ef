"""What runs inside the assistant: standard library only."""
