"""
Runs a store as every night does, its language model's answers taken from files, to the first that has none.

    python -m benchmarks.writer_requests --transcripts DIR --home DIR [--model NAME]
    python -m benchmarks.writer_requests --home DIR --replies DIR [--out FILE] [--played DIR] [--lenient]

The first line reads transcripts, of one project best, into a new store, up to where a language model is
asked. The second runs a copy of it against `<request id>.json` of `--replies`, in the product's own order and
under its own checks; a request that has no answer there is written to `--out`: all that is sent (system,
content, schema, the most output tokens), besides its id, purpose and prompt. Where every request has its
answer and a night asks nothing more, nothing is written. An answer belongs to the request with exactly these
words: record it as `<request id>.json` with `{"request_id": …, "turns": …, "text": …}`, `text` its JSON,
`turns` as given.

With `--lenient` a request about a session is also answered by what was recorded of the same turns under
another instruction or with other memories named: that measures a change of ours by answers that were not
given to it, and serves for nothing else. `--played` keeps the store as it was left.

What is asked depends on the transcripts, the release and the model's name, and on the answers before; not on
the clock, nor on where store and transcripts lie. Two more things count: the commits of a repository that
lies where the transcripts say, and the global memories of other projects in the same store.
"""

import argparse
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from cortex.flows.context import Context, EmbedderOf, model_in_force
from cortex.flows.engines.runs import FLOWS, look_for, opened, run_plain, stage_all
from cortex.storage.model_calls import Spending
from cortex.storage.settings.settings import ModelBudget, ModelSettings, Settings
from cortex.transforms.writer.pairs import LINKS_PROMPT
from cortex.transforms.writer.project import PROJECT_PROMPT
from cortex.transforms.writer.request import SESSION_PROMPT, ModelRequest
from cortex.transforms.writer.session import PIECE_PURPOSE
from tests.model_server import Body, ModelServer, Recorded, turns_shown

MODEL = "claude-haiku-5-5"
# Every run is of one moment: what it keeps of an answer does not depend on when that was recorded.
NOW = datetime(2026, 11, 24, tzinfo=UTC)
# What a night asks once the first has asked about all sessions: pairs of what it merged, and those of the
# scopes that its cap left out.
MAX_NIGHTS = 8
# Of purpose and prompt nothing is sent, but both are part of a request's id.
PURPOSES = (
    ("session", SESSION_PROMPT),
    (PIECE_PURPOSE, SESSION_PROMPT),
    ("project", PROJECT_PROMPT),
    ("links", LINKS_PROMPT),
)
WITHOUT_LIMIT = ModelBudget(daily_usd=10_000, daily_requests=100_000, run_requests=100_000)


def main() -> None:
    """Make the store, or write the first request without an answer, and say which."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--played", type=Path)
    parser.add_argument("--lenient", action="store_true")
    parser.add_argument("--model", default=MODEL)
    chosen = parser.parse_args()
    if chosen.transcripts:
        read_in(chosen.home, chosen.transcripts)
    if not chosen.replies:
        return
    with TemporaryDirectory() as scratch:
        home = copied(chosen.home, chosen.played or Path(scratch, "home"))
        missing = played(home, chosen.replies, chosen.model, is_lenient=chosen.lenient)
    if missing is None:
        print("every request has its answer")
        return
    print(f"no answer to {missing.request_id} ({missing.prompt})")
    if chosen.out:
        text = json.dumps(as_row(missing), ensure_ascii=False, indent=1)
        chosen.out.write_text(text, encoding="utf-8")


def as_row(request: ModelRequest) -> Body:
    """Return all that is sent of a request, and what its id depends on besides."""
    return {
        "request_id": request.request_id,
        "purpose": request.purpose,
        "model": request.model,
        "prompt": request.prompt,
        "turns": turns_shown(request.content),
        "system": request.system,
        "content": request.content,
        "schema": json.loads(request.schema),
        "max_output_tokens": request.max_output_tokens,
    }


# -- A run of a store against recorded answers.


def read_in(home: Path, transcripts: Path) -> None:
    """Read the transcripts below a folder into the new store `home`, up to where a model is asked."""
    settings = Settings(home)
    stage_all(settings, look_for(settings, [transcripts]).transcripts)
    stages = FLOWS["backfill"]
    asking = [stage.name for stage in stages].index("write")
    with opened("backfill", Context(settings, clock=lambda: NOW)) as run:
        run_plain(stages[:asking], run)


def copied(home: Path, target: Path) -> Path:
    """Copy a store to where it may be run, and return where that is."""
    shutil.copytree(home, target, symlinks=True)
    return target


def played(
    home: Path,
    replies: Path,
    model: str = MODEL,
    embedder_of: EmbedderOf = model_in_force,
    *,
    is_lenient: bool = False,
) -> ModelRequest | None:
    """
    Run the store `home` until a night asks nothing; return the first request without an answer before that.

    That request ends the run where it stands: no session is passed over, and nobody runs the store again.
    """
    recorded = Recorded(replies, PURPOSES, is_lenient=is_lenient)
    with ModelServer(recorded, takes_batches=False) as server:
        models = ModelSettings("api", model, api_key="none", base_url=server.url)
        settings = Settings(home, models=models, budget=WITHOUT_LIMIT)
        context = Context(settings, embedder_of, lambda: NOW)
        for night in range(MAX_NIGHTS):
            before = recorded.count
            _run(context, "nightly" if night else "backfill", recorded)
            if recorded.missing:
                # The same words may be asked for two purposes: the ledger knows for which.
                reserved = {each.request_id for each in Spending(home).attempts()}
                asked = recorded.requests(recorded.missing)
                [request] = [each for each in asked if each.request_id in reserved]
                return request
            if recorded.count == before:
                return None
    raise AssertionError(f"a store that nothing is added to still asks after {MAX_NIGHTS} nights")


def _run(context: Context, flow: str, recorded: Recorded) -> None:
    """Run the stages of a flow, and none after one that has met a request without an answer."""
    with opened(flow, context) as run:
        for stage in FLOWS[flow]:
            run_plain([stage], run)
            if recorded.missing:
                return


if __name__ == "__main__":
    main()
