"""What each command does: one plain function a command, printing at the end."""

# The folders of commands: the sections of `cortex --help`, in its order.
SECTION_FOLDERS = ("start", "take_in", "ask", "shape", "projects_and_settings", "keep")
