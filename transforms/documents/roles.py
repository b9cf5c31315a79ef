"""What somebody may do in a project of a team: read, also write, also take out what others wrote."""

from dataclasses import dataclass

READER, WRITER, ADMIN = ROLES = ("reader", "writer", "admin")


@dataclass(frozen=True)
class CallerRole:
    """The role of a caller over HTTP (`*`: of everybody), in the project of a folder or, for "", in all."""

    subject: str
    role: str
    folder: str = ""


def caller_role(text: str) -> CallerRole:
    """
    Return what SUBJECT=ROLE or SUBJECT=ROLE@FOLDER says. Raises ValueError for anything else.

    >>> caller_role("ada=writer@/srv/api")
    CallerRole(subject='ada', role='writer', folder='/srv/api')
    """
    subject, _, rest = text.partition("=")
    role, _, folder = rest.partition("@")
    if not subject or role not in ROLES or not (not folder or folder.startswith(("/", "~"))):
        raise ValueError(text)
    return CallerRole(subject, role, folder)
