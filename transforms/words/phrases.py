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

    >>> counted(1, "session"), counted(3, "session")
    ('1 session', '3 sessions')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
