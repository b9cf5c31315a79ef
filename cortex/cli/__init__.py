"""What each command does: one plain function a command, printing at the end."""
