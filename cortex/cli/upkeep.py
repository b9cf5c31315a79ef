"""The commands that keep the store sound: rebuild, rederive."""

from dataclasses import asdict

from cortex.cli.memories import open_store
from cortex.cli.present import present
from cortex.cli.runs import print_report
from cortex.cli.terminal import hint, now, print_json, progress_bars, say
from cortex.flows.comparison import Comparison, compare
from cortex.flows.lake_repair import LakeRepair, Repair
from cortex.flows.rebuild import rebuild as rebuild_tables
from cortex.flows.rederive import Proposal, Rederivation, decline, promote
from cortex.flows.rederive import rederive as derive
from cortex.flows.runs import opened, row_counts
from cortex.storage.reports import keep_report
from cortex.storage.settings import load_settings
from cortex.transforms.errors import AuditFailed, UsageError

DIFFERENCES_SHOWN = 40
LINES_SHOWN = 5
CELL_CHARS = 60


def rebuild(
    *,
    check: bool,
    adopt_lake: bool = False,
    set_aside: bool = False,
    accepts_loss: bool = False,
    as_json: bool,
) -> None:
    """
    Make the tables and briefs anew from the lake; with `check` only compare. Raises AuditFailed, LossRefused.

    `adopt_lake` first makes the manifest from the lake's files, `set_aside` moves those that cannot be used
    beside the store, and what is lost with them is accepted. Raises LakeUnclear where files are in doubt.
    """
    if check and (adopt_lake or set_aside):
        raise UsageError("--check changes nothing.", "Give it alone, or leave it out.")
    if check:
        return _check(as_json=as_json)
    settings, at = load_settings(), now()
    repair = LakeRepair(settings, at, adopt=adopt_lake, set_aside=set_aside)
    with (
        progress_bars() as progress,
        opened("rebuild", present(settings, lambda: at), progress=progress, prepare=repair) as run,
    ):
        _tell_repair(repair.done)
        run.accepts_loss = accepts_loss or set_aside
        rebuild_tables(run)
        run.report.rows = row_counts(run)
        run.report.seconds = sum(s.seconds for s in run.report.stages if s.stage in ("rebuild", "render"))
        keep_report(run.store.runs, run.report)
        print_report(run.report, as_json=as_json)
    return None


def _tell_repair(done: Repair) -> None:
    """Say on standard error what became of the lake's files."""
    if done.adopted:
        hint(f"Adopted {done.adopted} files of the lake. Transcripts are read again with the next backfill.")
    for path in done.left_out:
        hint(f"Left out: {path}")
    if done.folder:
        hint(
            f"The files left out are in {done.folder}, where `cortex forget` does not reach. "
            "Delete that folder once you do not need it. What transcripts still say: cortex backfill"
        )


def _check(*, as_json: bool) -> None:
    with opened("rebuild", present()) as run:
        found = compare(run)
    if as_json:
        print_json(
            {
                "clean": not found.differences,
                "rows": found.rows,
                "differences": [asdict(one) for one in found.differences],
                "notes": found.notes,
            }
        )
    else:
        _print_comparison(found)
    if found.differences:
        raise AuditFailed(
            f"{len(found.differences)} cells of the live tables are not what the lake says.",
            "Make them anew: cortex rebuild",
        )


def _print_comparison(found: Comparison) -> None:
    for note in found.notes:
        say(f"Note: {note}.")
    for one in found.differences[:DIFFERENCES_SHOWN]:
        cells = f"{one.column}: {_cell(one.live)} ≠ {_cell(one.rebuilt)}" if one.column else "whole row"
        where = "" if one.column else f": live {one.live}, rebuilt {one.rebuilt}"
        say(f"{one.scope} {one.table} {one.key[:12]} {cells}{where}")
    if len(found.differences) > DIFFERENCES_SHOWN:
        say(f"… {len(found.differences) - DIFFERENCES_SHOWN} more; all of them: --json")
    if not found.differences:
        say(f"Clean: {found.rows:,} rows are what the lake says.")


def rederive(
    project: str | None, *, take: bool, drop: bool, accepts_loss: bool = False, as_json: bool
) -> None:
    """Show what extractor and policy make of the turns; take or drop it. Raises AuditFailed, LossRefused."""
    if take and drop:
        raise UsageError("--promote and --drop exclude each other.", "Give one of them, or none to look.")
    projects = open_store().projects.named(project) if project else None
    with opened("rederive", present()) as run:
        run.accepts_loss = accepts_loss
        found = derive(run, projects)
        if take:
            promote(run, found)
            run.report.rows = row_counts(run)
            run.report.seconds = found.seconds
            keep_report(run.store.runs, run.report)
        declined = decline(run, projects) if drop else []
    outcome = "promoted" if take else "dropped" if drop else "proposed"
    if as_json:
        return print_json({"outcome": outcome, **_as_dict(found)})
    for proposal in found.proposals:
        _print_proposal(proposal)
    texts = sum(p.texts_to_embed for p in found.proposals)
    say(
        f"Cost: {found.seconds:.1f} s to derive, {texts} texts to embed "
        f"(some {found.seconds_to_embed:.0f} s); no model tokens."
    )
    if take:
        say("Promoted.")
    elif drop:
        say(f"Dropped: {len(declined)} projects stay as they are, but for sessions that grow.")
    else:
        say("Nothing was changed. Take it: cortex rederive --promote; leave it: cortex rederive --drop")
    return None


def _print_proposal(proposal: Proposal) -> None:
    counts = (len(proposal.appears), len(proposal.vanishes), len(proposal.changes))
    if not any(counts):
        return say(f"{proposal.scope}: the same {proposal.unchanged} memories.")
    say(
        f"{proposal.scope}: {counts[0]} appear, {counts[1]} vanish, {counts[2]} change, "
        f"{proposal.unchanged} stay."
    )
    for mark, rows in (("+", proposal.appears), ("-", proposal.vanishes)):
        for row in rows[:LINES_SHOWN]:
            say(f"  {mark} [{row['memory_type']}] {_cell(row['text'])}")
    for one in proposal.changes[:LINES_SHOWN]:
        said = f"{_cell(one.before)} → {_cell(one.after)}" if "text" in one.columns else _cell(one.after)
        say(f"  ~ [{one.memory_type}] {', '.join(one.columns)}: {said}")
    if proposal.orphaned_entries:
        say(f"  ! {proposal.orphaned_entries} journal entries are about memories that would vanish.")
    return None


def _as_dict(found: Rederivation) -> dict[str, object]:
    return {
        "scopes": [asdict(proposal) for proposal in found.proposals],
        "cost": {
            "seconds": round(found.seconds, 3),
            "texts_to_embed": sum(p.texts_to_embed for p in found.proposals),
            "seconds_to_embed": round(found.seconds_to_embed, 1),
        },
    }


def _cell(text: str | None) -> str:
    flat = " ".join((text or "").split())
    return flat if len(flat) <= CELL_CHARS else flat[: CELL_CHARS - 1] + "…"
