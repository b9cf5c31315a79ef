"""A git remote as one spelling that holds no credentials: what a project's identity is made of."""

import re

_SCHEME = re.compile(r"^([a-z+]+)://", re.IGNORECASE)
# `name:key@`, also if the key holds a raw `/`, `?`, `#` or `@`: behind a host's colon come digits alone.
_USER_AND_KEY = re.compile(r"^[^/@:\[]*:(?!\d*(?:[/?#]|$)).*@", re.DOTALL)
_USER = re.compile(r"^[^/]*@")


def normalised_remote(url: str) -> str:
    """
    Return a git remote without scheme, credentials, port and `.git`, lower case, so that all spellings agree.

    Credentials are user and password, the query and the fragment of a URL, and what looks like a token
    anywhere else in it.

    >>> normalised_remote("git@github.com:Some/Repo.git")
    'github.com/some/repo'
    >>> normalised_remote("https://user:key@github.com:443/some/repo.git?private_token=abc")
    'github.com/some/repo'
    """
    # Imported here: a question reads the names of projects, and looks at no remote.
    from cortex.transforms.redaction.redact import redact

    url = url.strip()
    bare, _ = redact(_without_credentials(url))
    bare = re.sub(r"^([^/:]+):(\d+/)?", r"\1/", bare.lower())
    return re.sub(r"(\.git)?/*$", "", bare)


def _without_credentials(url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        # `host:path` has no password; in a path on this machine `?`, `#` and `@` are letters like others.
        is_path = url.startswith(("/", ".", "~")) or ":" not in url
        return url if is_path else re.sub(r"^[^/@]*@", "", without_query(url))
    rest = url[scheme.end() :]
    if scheme[1].lower() == "file":
        return rest
    rest = _USER_AND_KEY.sub("", rest)
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    return _USER.sub("", rest)


def without_query(remote: str) -> str:
    """
    Return a remote, or its last part, without a query: earlier versions noted it with the project.

    >>> without_query("gitlab.example/some/repo.git?private_token=abc")
    'gitlab.example/some/repo'
    """
    return re.sub(r"(\.git)?/*\?[^/?]*=.*$", "", remote, flags=re.DOTALL)
