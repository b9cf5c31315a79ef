"""What each command does: one plain function a command, printing at the end."""

# The folders of commands: the sections of `cortex --help`, in its order.
SECTION_FOLDERS = ("start", "ingest", "ask", "edit_and_share", "projects_and_settings", "maintain")
