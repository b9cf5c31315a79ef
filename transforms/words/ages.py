"""Ages and counts as people read them."""

from datetime import datetime


def age_of(then: datetime | None, at: datetime) -> str:
    """
    Return how long ago something was, in the largest unit that fits.

    >>> age_of(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days'
    """
    if then is None:
        return "age unknown"
    days = (at - then).days
    if days >= 730:
        return f"{days // 365} years"
    if days >= 60:
        return f"{days // 30} months"
    if days >= 1:
        return counted(days, "day")
    hours = int((at - then).total_seconds() // 3600)
    return counted(hours, "hour") if hours >= 1 else "just now"


def ago(then: datetime | None, at: datetime) -> str:
    """
    Return when something was.

    >>> ago(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days ago'
    """
    age = age_of(then, at)
    return age if age in ("just now", "age unknown") else f"{age} ago"


def counted(count: int, noun: str) -> str:
    """
    Return a number of things in words.

    >>> counted(1, "session"), counted(3, "session"), counted(2, "memory")
    ('1 session', '3 sessions', '2 memories')
    """
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}s"
