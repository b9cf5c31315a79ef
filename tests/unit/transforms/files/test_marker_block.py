"""A block of ours in a file of the user's touches nothing else, and is taken out to the byte (spec 11.1)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cortex.transforms.documents.marker_block import (
    IGNORE_FILE,
    MARKDOWN,
    Undo,
    Unplaceable,
    file_of,
    pattern_of,
    put,
    take,
)
from tests.examples import cases

START, END = MARKDOWN.start, MARKDOWN.end
PIECES = st.sampled_from(
    [b"# Notes\n", b"tabs, not spaces", b"\r\n", b"\n", b"\n\n", b"\t", b"\xc3\xa9\n", b"\xef\xbb\xbf", b"\r",
     b"see <!-- CORTEX:START --> above\n", b"```\n", START + START, b"# CORTEX:STARTED\n"]
)  # fmt: skip
USERS = st.lists(PIECES, max_size=8).map(b"".join)
TEXTS = st.lists(st.sampled_from(["- a fact", "", "# Notes", "é", "x" * 200]), max_size=5).map("\n".join)


@given(USERS, TEXTS)
@example(b"", "")
@example(b"no end", "brief")
@example(b"windows\r\n", "brief")
def test_putting_and_taking_gives_the_very_same_bytes(content, text):
    changed, undo = put(content, text, MARKDOWN)
    assert changed.startswith(content)
    assert take(changed, MARKDOWN, undo) == content


@given(USERS, TEXTS, TEXTS)
def test_another_text_takes_the_place_of_the_first(content, first, second):
    changed, undo = put(content, first, MARKDOWN)
    again, undo = put(changed, second, MARKDOWN, undo)
    assert again == put(content, second, MARKDOWN)[0]
    assert put(again, second, MARKDOWN, undo) == (again, undo)
    assert take(again, MARKDOWN, undo) == content


@given(USERS, USERS, st.sampled_from([b"", b"old\n", b"\n", b"a\r\nb\n"]), TEXTS)
def test_between_the_users_own_markers_all_around_stays(before, after, inner, text):
    before = before + b"\n" if before and not before.endswith(b"\n") else before
    content = before + START + b"\n" + inner + END + b"\n" + after
    changed, undo = put(content, text, MARKDOWN)
    assert changed.startswith(before + START + b"\n") and changed.endswith(END + b"\n" + after)
    assert text.strip("\n").encode() in changed.replace(b"\r\n", b"\n")
    assert take(changed, MARKDOWN, undo) == content


@given(USERS, TEXTS, USERS)
def test_what_the_user_writes_behind_the_block_stays(content, text, added):
    changed, undo = put(content, text, MARKDOWN)
    left = take(changed + added, MARKDOWN, undo)
    assert left == content + (undo.glue if added else b"") + added


def test_markers_without_an_end_of_line_are_markers():
    content = b"a\n  " + START + b" \r\n" + END
    changed, undo = put(content, "brief", MARKDOWN)
    assert changed == b"a\n  " + START + b" \r\nbrief\r\n" + END
    assert take(changed, MARKDOWN, undo) == content


def test_line_ends_are_the_files_own():
    assert put(b"a\r\n", "b\nc", MARKDOWN)[0] == b"a\r\n" + START + b"\r\nb\r\nc\r\n" + END + b"\r\n"


def test_where_the_user_took_the_block_out_nothing_is_taken():
    assert take(b"mine\n", MARKDOWN, Undo(None, b"\n")) == b"mine\n"


@cases(
    "content",
    [
        START + b"\n",
        END + b"\n",
        END + b"\n" + START + b"\n",
        (START + b"\n" + END + b"\n") * 2,
        START + b"\n" + START + b"\n" + END + b"\n",
        "é".encode("utf-16"),
        b"\xff\xfe",
        b"a\0b",
    ],
)
def test_a_file_that_needs_a_guess_is_left_alone(content):
    with pytest.raises(Unplaceable):
        put(content, "brief", MARKDOWN)


def test_a_text_cannot_bring_markers_of_its_own():
    with pytest.raises(Unplaceable):
        put(b"", f"a\n{END.decode()}\nb", MARKDOWN)


def test_an_ignore_file_has_its_own_markers():
    changed, undo = put(b"*.o\n", "/CLAUDE.local.md", IGNORE_FILE)
    assert changed == b"*.o\n# CORTEX:START\n/CLAUDE.local.md\n# CORTEX:END\n"
    assert take(changed, IGNORE_FILE, undo) == b"*.o\n"


@cases(
    "surface",
    [
        "",
        "/etc/x",
        "../x",
        "a/../../x",
        ".git/config",
        "sub/.git/x",
        "~/x",
        "a/",
        "./a",
        "a\nb",
        "a\0",
        "fish/config.fish",
        "a.md/x",
        ".bashrc",
    ],
)
def test_a_surface_stays_within_the_project(surface):
    with pytest.raises(Unplaceable):
        file_of(surface)


def test_the_names_of_surfaces():
    named = [file_of(surface) for surface in ("hook", "rules", "local", "CLAUDE.md")]
    assert named == [None, ".claude/rules/cortex-brief.md", "CLAUDE.local.md", "CLAUDE.md"]
    assert pattern_of("a [b]*?.md") == "/a \\[b]\\*\\?.md"
