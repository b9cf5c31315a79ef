"""The one place that runs git: it asks a repository questions and lets nothing run that the repository names.

One command writes, `fast-import`: it adds objects and moves one branch, and touches neither the index nor the
working tree.

A repository's own configuration cannot be switched off, and dozens of its settings name programs. So only
questions that read are asked, each with the options that keep it from running anything; what a setting could
still do is overridden; nothing is fetched; and no configuration or environment but ours counts.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

# A hung network file system must not hold a run: most questions take milliseconds, the longest seen 5 s.
DEADLINE_SECONDS = 20
# Of 80,000 files the names take 4 MB. More than this cannot be an answer to our questions.
MAX_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024

# What may be asked, and the options that turn off what a repository's configuration turns on.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "cat-file": (),
    "config": (),
    "for-each-ref": (),
    "grep": ("--no-color", "--no-textconv", "--no-recurse-submodules", "--no-line-number", "--no-column"),
    "log": ("--no-color", "--no-textconv", "--no-ext-diff", "--no-show-signature", "--no-mailmap"),
    "ls-tree": (),
    "merge-base": (),
    "rev-list": (),
    "rev-parse": (),
}
# What writes: objects, and the branch that it is given. No filter, no hook and no attribute has a part in it.
WRITING: dict[str, tuple[str, ...]] = {"fast-import": ("--quiet", "--done", "--date-format=raw")}

# Beats the repository's own configuration. Programs first, then what would change the form of an answer.
_SETTINGS = (
    "core.alternateRefsCommand=:", "core.askPass=", "core.editor=:", "core.fsmonitor=false",
    "core.gitProxy=", "core.hooksPath=/dev/null", "core.pager=cat", "core.sshCommand=false",
    "credential.helper=", "gpg.program=false", "gpg.openpgp.program=false", "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=", "gpg.x509.program=false", "sequence.editor=:", "log.showSignature=false",
    "gc.auto=0", "maintenance.auto=false", "protocol.allow=never", "safe.bareRepository=explicit",
    "core.attributesFile=/dev/null", "core.excludesFile=/dev/null", "core.quotePath=false",
    "log.follow=false", "log.showRoot=true", "mailmap.file=/dev/null", "submodule.recurse=false",
)  # fmt: skip

# GIT_ALLOW_PROTOCOL beats `protocol.<name>.allow` of the repository, which beats `protocol.allow` of ours;
# it is also what keeps a git before 2.45, which does not know GIT_NO_LAZY_FETCH, from fetching.
_OWN = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": ":",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",  # a git before 2.32 does not know GIT_CONFIG_GLOBAL
    "LC_ALL": "C",
    "SSH_ASKPASS": "false",
    "XDG_CONFIG_HOME": "/nonexistent",
}
# All that is passed on: what finds git and its libraries, and whose repositories root may read under sudo.
_KEPT = ("DEVELOPER_DIR", "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "SUDO_UID", "TMPDIR")

# Working trees whose git ran into its deadline: another dozen questions would wait as long each.
_hung: set[str] = set()


# Each of them changes with a fetch, a pull, a merge or a commit: git replaces a ref by renaming a file.
_REFS = ("HEAD", "FETCH_HEAD", "packed-refs", "config", "logs/HEAD", "refs/heads", "refs/remotes/origin",
         "reftable")  # fmt: skip


class GitFailed(Exception):
    """Git is missing, refused, took too long or said too much."""


def ask(place: str, *question: str, seconds: float = DEADLINE_SECONDS) -> str:
    """
    Return what git answers to a question about the repository around `place`, stripped.

    The question is asked at the top of the working tree. A `grep` that matches nothing answers with nothing.
    Raises GitFailed; after a deadline passed, every later question about the same tree does so at once.
    """
    return ask_bytes(place, *question, seconds=seconds).decode("utf-8", "replace").strip()


def ask_bytes(place: str, *question: str, given: bytes = b"", seconds: float = DEADLINE_SECONDS) -> bytes:
    """Return git's answer as it is, to a question that reads `given`. Raises as `ask` does."""
    command, *words = question
    return _answer(place, [command, *QUESTIONS[command], *words], given, seconds)


def change(place: str, command: str, *words: str, given: bytes) -> None:
    """Let git read `given` and write to the repository around `place`. Raises GitFailed."""
    _answer(place, [command, *WRITING[command], *words], given, DEADLINE_SECONDS)


def _answer(place: str, command: list[str], given: bytes, seconds: float) -> bytes:
    top = working_tree(place)
    if top is None or top in _hung:
        raise GitFailed
    settings = [word for setting in (*_SETTINGS, *_trust_in(top)) for word in ("-c", setting)]
    call = [_program(), "--no-pager", *settings, "-C", top, *command]
    environment = {**_environment(), "GIT_CEILING_DIRECTORIES": str(Path(top).parent)}
    code, answer = _run(call, environment, seconds, given)
    if code is None:
        _hung.add(top)
    if code != 0 and not (command[0] == "grep" and code == 1):
        raise GitFailed
    return answer


def person_at(place: str) -> tuple[str, str]:
    """Return (name, e-mail) that git would note for this person's commit; empty if it knows none."""
    top = working_tree(place)
    if top is None:
        return "", ""
    theirs = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    environment = {**_environment(), **theirs}
    environment.pop("GIT_CONFIG_GLOBAL")
    answers = []
    for name in ("user.name", "user.email"):
        code, answer = _run([_program(), "-C", top, "config", "--get", name], environment, DEADLINE_SECONDS)
        answers.append(answer.decode("utf-8", "replace").strip() if code == 0 else "")
    chosen = (os.environ.get("GIT_AUTHOR_NAME"), os.environ.get("GIT_AUTHOR_EMAIL"))
    return chosen[0] or answers[0], chosen[1] or answers[1]


def refs_state(top: str) -> str:
    """
    Return what changes whenever a branch of the repository moves, without asking git; empty if unknown.

    Names, sizes and times of the files and folders that hold its refs.
    """
    folder = Path(top, ".git")
    try:
        if folder.is_file():
            folder = Path(top, folder.read_text(encoding="utf-8").partition("gitdir:")[2].strip())
        common = folder / "commondir"
        if common.is_file():
            folder = folder / common.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
    return " ".join(_stamp(folder / name) for name in _REFS)


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return "-"
    return f"{status.st_mtime_ns}.{status.st_size}"


def working_tree(place: str) -> str | None:
    """
    Return the top of the working tree that `place` is in; None outside of one.

    As git finds it, except that a bare repository ends the search: one may come as a plain folder of a clone,
    with a configuration that its author wrote. `safe.bareRepository` says so to git itself from 2.38 on.
    """
    try:
        return _top_above(Path(place).resolve())
    except (OSError, RuntimeError, ValueError):  # not readable, a loop of links, no path at all
        return None


def _top_above(here: Path) -> str | None:
    if not here.is_dir():
        return None
    device = here.stat().st_dev
    while not ((here / ".git").is_file() or (here / ".git" / "HEAD").exists()):
        is_bare = here.name != ".git" and _is_git_folder(here)
        if is_bare or here.parent == here or here.parent.stat().st_dev != device:
            return None
        here = here.parent
    return str(here)


def _is_git_folder(folder: Path) -> bool:
    return (folder / "HEAD").exists() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _trust_in(top: str) -> tuple[str, ...]:
    """Return the user's own `safe.directory` for a tree that belongs to another; git refuses it otherwise."""
    owners = {path.stat().st_uid for path in (Path(top), Path(top, ".git"))}
    return () if owners == {os.geteuid()} else _trusted()


@cache
def _trusted() -> tuple[str, ...]:
    """Return `safe.directory` as the user and the machine have it: their word, not that of a repository."""
    theirs = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    environment = {**_environment(), **theirs}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        environment.pop(name)
    lines: list[str] = []
    for owner in ("--system", "--global"):
        call = [_program(), "config", owner, "--get-all", "safe.directory"]
        code, answer = _run(call, environment, DEADLINE_SECONDS)
        lines += answer.decode("utf-8", "replace").splitlines() if code == 0 else []
    return tuple(f"safe.directory={folder}" for folder in lines)


def _program() -> str:
    """Return git's absolute path: a relative entry of PATH could mean a file of the repository."""
    program = shutil.which("git", path=_search_path())
    if program is None:
        raise GitFailed
    return program


def _search_path() -> str:
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry.startswith("/"))


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PATH": _search_path(), **_OWN}


def _run(
    call: list[str], environment: dict[str, str], seconds: float, given: bytes = b""
) -> tuple[int | None, bytes]:
    """Return (exit code, output); the code is None if time ran out. Raises GitFailed."""
    until = time.monotonic() + seconds
    try:
        with _source_of(given) as source:
            process = subprocess.Popen(
                call,
                cwd="/",
                env=environment,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a process group to kill as a whole, and no terminal to ask on
            )
    except OSError as error:
        raise GitFailed from error
    with process:
        try:
            answer = _output_of(process, until)
            return process.wait(max(0.0, until - time.monotonic())), answer
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what git started and left behind
            if isinstance(error, (TimeoutError, subprocess.TimeoutExpired)):
                return None, b""
            raise


@contextmanager
def _source_of(given: bytes) -> Iterator[int]:
    """Yield a descriptor from which `given` is read: of a file, since pipes could fill up on both sides."""
    if not given:
        yield subprocess.DEVNULL
        return
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file.fileno()


def _output_of(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return what a process writes. Raises TimeoutError, and GitFailed if it is too much."""
    assert process.stdout is not None
    descriptor, output = process.stdout.fileno(), bytearray()
    with DefaultSelector() as ready:
        ready.register(descriptor, EVENT_READ)
        while ready.select(max(0.0, until - time.monotonic())):
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                return bytes(output)
            output += chunk
            if len(output) > MAX_BYTES:
                raise GitFailed
    raise TimeoutError


def answer_of(place: str, *arguments: str) -> str:
    """Return git's answer, empty if it fails."""
    try:
        return ask(place, *arguments)
    except GitFailed:
        return ""


def lines_in(answer: str) -> list[str]:
    """Return the lines of an answer: a name or subject may hold other signs at which Python ends a line."""
    return answer.split("\n") if answer else []


def repository_at(paths: Iterable[str]) -> str | None:
    """Return the first of `paths` that is a folder of a git repository with a commit on this machine."""
    folders = (path for path in paths if Path(path).is_dir())
    return next((path for path in folders if answer_of(path, "rev-parse", "HEAD")), None)


def state_of(paths: Iterable[str]) -> str:
    """Return what changes whenever `doubts_of` might: HEAD, its branch, all branches; empty for none."""
    place = repository_at(paths)
    if place is None:
        return ""
    return answer_of(place, "for-each-ref", "--format=%(refname)%(objectname)", "refs/heads") + answer_of(
        place, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"
    )
