"""Every setting, once: name, kind, default, bounds, unit, meaning; its value read from words and TOML."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cortex.storage.settings.writer_index import WRITER_MODULES, WRITER_WORDS
from cortex.transforms.documents.marker_block import ENDINGS, FILES, HOOK, Unplaceable, file_of
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.retention import days_of_type
from cortex.transforms.vocabulary import MEMORY_TYPES, ROLES, caller_role

# When a change acts: with the command that makes it, or with the run that next does what it is about.
AT_ONCE, NEXT_RUN, NIGHTLY = "at once", "with the next run", "with the next nightly run"

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


# Forms of a list's texts: what reads one, and raises ValueError, and how a person is told of it.
FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    "type=days": (
        days_of_type,
        f'a list of type=days: ["gotcha=90"]; the types: {", ".join(MEMORY_TYPES)}',
    ),
    "subject=role": (
        caller_role,
        f'a list of SUBJECT=ROLE or SUBJECT=ROLE@FOLDER: ["*=reader"]; the roles: {", ".join(ROLES)}',
    ),
}


@dataclass(frozen=True)
class Key:
    """
    One setting.

    `default` gives its kind: a number within `low` and `high` (a whole one if the default is), yes or no, a
    text, or a list of texts out of `words` (of any texts if `words` is empty). A text with `words` is one of
    them, one with `endings` may also end in one of these, one with `beginnings` is empty or begins with one.
    A list may ask for texts of a `form` (a key of FORMS).
    A setting that is `per_project` may differ by project; one that is `for_hooks` is handed to
    the hooks, which cannot read TOML. `acts` says when a change takes effect.
    """

    name: str
    default: int | float | bool | str | tuple[str, ...]
    unit: str
    meaning: str
    low: int = 0
    high: int | None = None
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    form: str = ""
    per_project: bool = False
    for_hooks: bool = False
    is_secret: bool = False
    acts: str = AT_ONCE

    @property
    def variable(self) -> str:
        """Return the environment variable that has the last word."""
        return "CORTEX_" + self.name.replace(".", "_").upper()

    def checked(self, value: object, where: str) -> object:
        """Return `value` as the setting's kind, lists as tuples. Raises UsageError, naming `where`."""
        if isinstance(self.default, tuple) and isinstance(value, list):
            value = tuple(value)
        if isinstance(self.default, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self._fits(value):
            return value
        shown = "what was given" if self.is_secret else repr(value)
        raise UsageError(f"{where}: {self.name} is {shown}.", f"Give {self.wanted}.")

    def from_words(self, words: Sequence[str], where: str) -> object:
        """Return the value that a person's words mean; a word of a closed list may hold several."""
        if isinstance(self.default, tuple):
            parts = [part.strip() for word in words for part in (word.split(",") if self.words else [word])]
            return self.checked(tuple(part for part in parts if part), where)
        text = " ".join(words).strip()
        if isinstance(self.default, bool):
            word = text.lower()
            return self.checked(word in YES if word in (*YES, *NO) else text, where)
        if isinstance(self.default, int):
            return self.checked(int(text) if text.lstrip("-").isdecimal() else text, where)
        if isinstance(self.default, float):
            return self.checked(_decimal(text), where)
        return self.checked(text, where)

    def from_variable(self, text: str, where: str) -> object:
        """Return the value that an environment variable means: paths stand between `:`, as in PATH."""
        is_paths = isinstance(self.default, tuple) and not self.words
        return self.from_words(text.split(os.pathsep) if is_paths else [text], where)

    @property
    def wanted(self) -> str:
        """Say what the setting takes."""
        if self.form:
            return FORMS[self.form][1]
        if isinstance(self.default, tuple):
            if self.unit == "projects":
                return 'a list of project names or folders: ["kelp", "/home/ada/reef"]'
            return f"any of {', '.join(self.words)}" if self.words else 'a list of paths: ["/one", "/two"]'
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"a whole number from {self.low}" + ("" if self.high is None else f" to {self.high}")
        if isinstance(self.default, float):
            return f"a number from {self.low}" + ("" if self.high is None else f" to {self.high}")
        if self.endings:
            path = f"a path in the project that ends in {' or '.join(self.endings)}"
            return f"{', '.join(self.words)} or {path}"
        if self.words:
            return f"one of {', '.join(self.words)}"
        return f"one line that begins with {' or '.join(self.beginnings)}" if self.beginnings else "a text"

    def _fits(self, value: object) -> bool:
        if isinstance(self.default, tuple):
            return isinstance(value, tuple) and all(
                isinstance(word, str) and (not self.words or word in self.words) and self._is_item(word)
                for word in value
            )
        if isinstance(self.default, int) and not isinstance(self.default, bool):
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return is_number and self.low <= value and (self.high is None or value <= self.high)  # type: ignore[operator]
        if isinstance(self.default, float):
            is_number = isinstance(value, float) and math.isfinite(value)
            return is_number and self.low <= value and (self.high is None or value <= self.high)  # type: ignore[operator]
        if isinstance(value, str) and (self.endings or self.words):
            return value in self.words or (bool(self.endings) and _is_placeable(value))
        if isinstance(value, str) and self.beginnings:
            return not value or (value.startswith(self.beginnings) and value.isprintable())
        return isinstance(value, type(self.default))

    def _is_item(self, word: str) -> bool:
        try:
            return not self.form or bool(FORMS[self.form][0](word))
        except ValueError:
            return False


def _is_placeable(surface: str) -> bool:
    try:
        return file_of(surface) is not None
    except Unplaceable:
        return False


def _decimal(text: str) -> float | str:
    """Return the number that a text writes, else the text itself."""
    try:
        return float(text)
    except ValueError:
        return text


KEYS = (
    Key(
        "capture.excluded_projects",
        (),
        "folders",
        "folders, with their subfolders, whose sessions are never stored",
        acts=NEXT_RUN,
    ),
    Key(
        "capture.min_chars",
        50,
        "characters",
        "sessions with less text than this are not read until they grow",
        acts=NEXT_RUN,
    ),
    Key(
        "brief.tokens",
        0,
        "tokens",
        "token budget of a brief; 0 means 500, or 1,000 if a language model reads sessions",
        high=3_000,  # spec 11.2
        per_project=True,
    ),
    Key(
        "brief.surface",
        "hook",
        "place",
        "where a session reads the brief: hook, or a file (rules, local, or a .md path in the project)",
        words=(HOOK, *FILES),
        endings=ENDINGS,
        per_project=True,
    ),
    Key(
        "recall.at_prompt",
        True,
        "yes or no",
        "add known facts that bear on a prompt",
        per_project=True,
        for_hooks=True,
    ),
    Key(
        "retention.days",
        0,
        "days",
        "how long to keep conversations; 0 keeps them forever",
        per_project=True,
        acts=NIGHTLY,
    ),
    Key(
        "retention.types",
        (),
        "type=days",
        "how long to keep memories of a type, with their evidence; 0 keeps them forever",
        form="type=days",
        per_project=True,
        acts=NIGHTLY,
    ),
    Key(
        "embed.voyage_api_key",
        "",
        "key",
        "embed with Voyage AI instead of the local model; prose then leaves this machine",
        acts=NEXT_RUN,
        is_secret=True,
    ),
    Key(
        "embed.local",
        True,
        "yes or no",
        "embed with the local model; without it, and without a key, search goes by words alone",
        acts=NEXT_RUN,
    ),
    Key(
        "models.writer",
        "none",
        "provider",
        f"the language model that writes memories: {WRITER_WORDS}; with any but none, redacted "
        "transcripts leave this machine",
        words=("none", *WRITER_MODULES),
        acts=NEXT_RUN,
    ),
    Key(
        "models.writer_model",
        "claude-haiku-5-5",
        "model",
        "the model's name, as its provider calls it",
        acts=NEXT_RUN,
    ),
    Key(
        "models.api_key",
        "",
        "key",
        "API key for the language model, if `models.writer` is api",
        acts=NEXT_RUN,
        is_secret=True,
    ),
    Key(
        "models.claude_token",
        "",
        "token",
        "token of your Claude Code login, if `models.writer` is claude; create one with `claude setup-token`",
        acts=NEXT_RUN,
        is_secret=True,
    ),
    Key(
        "models.replay",
        False,
        "yes or no",
        "let the answers of a language model that the store holds count, and ask for none, whatever "
        "`models.writer` says",
        acts=NEXT_RUN,
    ),
    Key(
        "models.base_url",
        "",
        "address",
        "endpoint that speaks Anthropic's Messages API, on this machine for instance; if empty, their own",
        beginnings=("https://", "http://"),
        acts=NEXT_RUN,
    ),
    Key(
        "budget.daily_usd",
        0.15,
        "US dollars per UTC day",
        "requests to a language model that could exceed this are not sent, but wait",
        high=10_000,
        acts=NEXT_RUN,
    ),
    Key(
        "budget.daily_requests",
        200,
        "requests per UTC day",
        "no more requests to a language model than this",
        high=100_000,
        acts=NEXT_RUN,
    ),
    Key(
        "budget.run_requests",
        100,
        "requests per run",
        "no more requests to a language model than this in one run",
        high=100_000,
        acts=NEXT_RUN,
    ),
    Key(
        "run.engine",
        "auto",
        "engine",
        "what runs the stages: prefect, plain (without Prefect), or auto (Prefect if a server is configured)",
        words=("auto", "prefect", "plain"),
    ),
    Key(
        "run.runner",
        "none",
        "runner",
        "with Prefect, what reads, extracts and embeds shards: none (the run itself), threads, dask or ray",
        words=("none", "threads", "dask", "ray"),
    ),
    Key(
        "run.workers",
        0,
        "workers",
        "how many workers a runner starts on this machine; 0 is one for each core",
        high=256,
    ),
    Key(
        "run.cluster",
        "",
        "address",
        "a Dask or Ray cluster that runs already: tcp://HOST:8786, tls://… or ray://HOST:10001",
        beginnings=("tcp://", "tls://", "ray://"),
    ),
    Key(
        "share.place",
        "",
        "address",
        "place for the memories that your team shares: s3://BUCKET/PREFIX or file:///FOLDER",
        beginnings=("s3://", "file:///"),
    ),
    Key(
        "share.projects",
        (),
        "projects",
        "projects, by name or folder, of which `cortex push` shares memories and `cortex pull` reads your "
        "team's",
    ),
    Key(
        "share.key_file",
        "",
        "path",
        "file with your team's key, by which pushed memories are encrypted; `cortex team key` sets it",
    ),
    Key(
        "mcp.projects",
        (),
        "folders",
        "folders of more projects whose memories an MCP client may see and change besides those of its "
        'own; "*" for all',
    ),
    Key(
        "mcp.calls_per_minute",
        120,
        "calls per minute",
        "no more calls of an MCP client are carried out within any 60 seconds",
        low=1,
        high=100_000,
    ),
    Key(
        "mcp.in_plugin",
        True,
        "yes or no",
        "the plugin for Claude Code starts the memory's tools with each session",
        for_hooks=True,
    ),
    Key(
        "mcp.issuer",
        "",
        "address",
        "identity provider whose access tokens `cortex mcp --http` accepts; required to serve",
        beginnings=("https://", "http://localhost", "http://127.0.0.1", "http://[::1]"),
    ),
    Key(
        "mcp.keys_url",
        "",
        "address",
        "address of the identity provider's public keys (JWKS); if empty, the provider is asked",
        beginnings=("https://", "http://localhost", "http://127.0.0.1", "http://[::1]"),
    ),
    Key(
        "mcp.resource_url",
        "",
        "address",
        "the address of `cortex mcp --http` as its clients call it, which tokens must be made for; if empty, "
        "http://127.0.0.1:PORT/mcp",
        beginnings=("https://", "http://localhost", "http://127.0.0.1", "http://[::1]"),
    ),
    Key(
        "mcp.http_projects",
        (),
        "folders",
        "folders of the projects that callers over HTTP see: FOLDER for all of them, SUBJECT=FOLDER for the "
        'one whose token says so, "*" for every project; without it only what holds everywhere',
    ),
    Key(
        "mcp.http_roles",
        (),
        "roles",
        "what callers over HTTP may do: SUBJECT=ROLE, or SUBJECT=ROLE@FOLDER in one project, * for "
        "everybody; without it their tokens' scopes alone say so",
        form="subject=role",
    ),
    Key(
        "redact.personal_data",
        False,
        "yes or no",
        "also replace e-mail addresses and phone numbers in transcripts",
        acts=NEXT_RUN,
    ),
    Key(
        "encryption.key_file",
        "",
        "path",
        "file with the key of an encrypted store; if empty, the OS keyring is used. `cortex encrypt` sets it",
    ),
    Key(
        "statusline.show",
        ("health", "memories", "capture", "context"),
        "parts",
        "items of the status line, in this order",
        words=("health", "memories", "capture", "context"),
        per_project=True,
        for_hooks=True,
    ),
    Key(
        "statusline.warn_percent",
        70,
        "percent of the context window",
        "from this level on, the status line warns that the context is filling up",
        low=1,
        high=100,
        per_project=True,
        for_hooks=True,
    ),
)

BY_NAME = {key.name: key for key in KEYS}


def key_of(name: str, where: str = "") -> Key:
    """Return the setting called `name`. Raises UsageError with what is meant instead, naming `where`."""
    if name in BY_NAME:
        return BY_NAME[name]
    raise UsageError(f"{f'{where}: ' if where else ''}there is no setting '{name}'.", _instead_of(name))


# What settings of this name in other memory tools are called here.
ELSEWHERE = {
    "archive.autoOnCompact": "Sessions are captured at every compaction; to leave out folders: "
    "capture.excluded_projects.",
    "archive.projectScope": "Recall looks in this folder's project; other projects: `cortex recall "
    "--all-projects`, mcp.projects.",
    "archive.minContentLength": "Did you mean capture.min_chars?",
    "monitor.tokenThreshold": "Did you mean statusline.warn_percent?",
    "statusline.enabled": "Use: cortex statusline install, cortex statusline uninstall.",
    "statusline.showContext": "Did you mean statusline.show?",
}
ALL_SETTINGS = "All settings: cortex config"


def _instead_of(name: str) -> str:
    """Return the next step for a name that no setting has: the one that is meant, or the policy's table."""
    import csv
    from importlib.resources import files

    if name in ELSEWHERE:
        return f"{ELSEWHERE[name]} {ALL_SETTINGS}"
    word = name.rpartition(".")[2]
    text = (files("cortex.data") / "reference" / "thresholds.csv").read_text(encoding="utf-8")
    rows = {row["name"]: row["value"] for row in csv.DictReader(text.splitlines())}
    if word in rows:
        return (
            f"{word} is a threshold of the policy ({rows[word]}): put the row with your value into "
            "CORTEX_HOME/policy/thresholds.csv; see docs/policy.md."
        )
    if near := get_close_matches(name, BY_NAME, n=1, cutoff=0.5):
        return f"Did you mean {near[0]}? {ALL_SETTINGS}"
    return f"{ALL_SETTINGS}. Half-lives, weights and limits are tables of the policy: docs/policy.md"
