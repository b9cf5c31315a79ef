"""A brief follows the branch that a session stands on when it starts, not the one of the last run."""

from cortex.hooks import branches as hook
from tests.bench import NOW
from tests.process.flows.test_branches import (
    MARK,
    checkout,  # noqa: F401
    is_marked,
    started,
)


def test_the_same_brief_is_marked_for_the_branch_one_stands_on(bench, checkout):
    published = bench.store.published.brief(bench.store.projects.named("kelp")[0])
    assert MARK in published  # main stood at the time of the run
    assert is_marked(bench, checkout.folder) == (False, True)
    checkout.git("switch", "-q", "try/ring")
    assert is_marked(bench, checkout.folder) == (False, False)
    checkout.git("switch", "-q", "main")
    assert is_marked(bench, checkout.folder) == (False, True)


def test_a_brief_rendered_on_the_branch_is_marked_on_the_trunk(bench, checkout):
    checkout.git("switch", "-q", "try/ring")
    bench.run("nightly", NOW)
    assert MARK not in bench.store.published.brief(bench.store.projects.named("kelp")[0])
    assert is_marked(bench, checkout.folder) == (False, False)
    checkout.git("switch", "-q", "main")
    assert is_marked(bench, checkout.folder) == (False, True)


def test_a_worktree_a_subfolder_and_a_detached_head_count(bench, checkout, tmp_path):
    (checkout.folder / "src").mkdir()
    assert is_marked(bench, checkout.folder / "src") == (False, True)
    checkout.git("worktree", "add", "-q", str(checkout.folder / "trial"), "try/ring")
    assert hook.branch_of(str(checkout.folder / "trial"))[0] == "try/ring"
    checkout.git("switch", "-q", "--detach", "try/ring")
    assert is_marked(bench, checkout.folder) == (False, False)
    checkout.git("switch", "-q", "--detach", "main")
    assert is_marked(bench, checkout.folder) == (False, True)


def test_a_merge_takes_the_mark_away_at_the_next_run(bench, checkout):
    checkout.git("merge", "-q", "--no-ff", "-m", "take it", "try/ring")
    bench.run("nightly", NOW)
    assert is_marked(bench, checkout.folder) == (False, False)


def test_a_branch_begun_since_holds_what_its_beginning_holds(bench, checkout):
    checkout.git("switch", "-q", "-c", "later", "try/ring")
    assert is_marked(bench, checkout.folder) == (False, False)
    checkout.git("switch", "-q", "-c", "other", "main")
    assert is_marked(bench, checkout.folder) == (False, True)
    before = started(bench, checkout.folder)
    checkout.commit("unknown to the last run")
    assert started(bench, checkout.folder) == before  # as published


def test_the_same_branch_gives_the_same_bytes(bench, checkout):
    notes = next((bench.home / "published").rglob(hook.NOTES))
    before = notes.read_bytes(), started(bench, checkout.folder)
    bench.run("nightly", NOW)
    assert (notes.read_bytes(), started(bench, checkout.folder)) == before
