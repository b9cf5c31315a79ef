"""Prefect where a server of it answers, plain elsewhere; where Prefect fails, the stages run without it."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.flows.engines import runs
from cortex.flows.engines.runs import PLAIN, PREFECT, engine_for
from cortex.storage.machine.prefect_server import forget_serving, note_serving
from cortex.transforms.errors import StoreNotWritable, UnknownValue
from tests.transcripts import decisions

NOWHERE = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def _no_prefect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def server() -> Iterator[str]:
    """Yield the address of an API that answers on loopback."""

    class Healthy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/health" else 404)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/api"
        listening.shutdown()


def write_profile(folder: Path, url: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    work = f'[profiles.work]\nPREFECT_API_URL = "{url}"\nPREFECT_API_KEY = "k"\n'
    (folder / "profiles.toml").write_text(f'active = "work"\n[profiles.ephemeral]\n{work}')


def test_where_nothing_is_set_up_auto_is_plain(home):
    assert engine_for("auto", home).engine == PLAIN
    assert engine_for("prefect", home).engine == PREFECT  # with a temporary server


def test_a_server_in_the_environment_is_taken(home, monkeypatch, server):
    monkeypatch.setenv("PREFECT_API_URL", server)
    assert engine_for("auto", home).engine == PREFECT
    assert engine_for("plain", home).engine == PLAIN


def test_a_server_in_prefects_own_profile_is_taken_with_its_login(home, tmp_path, server):
    write_profile(tmp_path / ".prefect", server)
    choice = engine_for("auto", home)
    assert choice.engine == PREFECT and choice.server is not None
    assert choice.server.settings == {"PREFECT_API_URL": server, "PREFECT_API_KEY": "k"}


def test_cortex_serve_is_taken_while_it_runs(home, server):
    note_serving(home, server)
    assert engine_for("auto", home).engine == PREFECT
    forget_serving(home)
    assert engine_for("auto", home).engine == PLAIN


def test_a_serve_that_was_killed_is_no_server(home):
    note_serving(home, NOWHERE)
    assert engine_for("auto", home) == engine_for("plain", home)


@pytest.mark.parametrize(
    "profile", ["", "active = 3", "active = 'x'\n[profiles]\nx = 1", "\0", "[profiles.x]"]
)
def test_a_profile_that_names_no_server_is_passed_over(home, tmp_path, profile):
    (tmp_path / ".prefect").mkdir()
    (tmp_path / ".prefect" / "profiles.toml").write_text(profile)
    assert engine_for("auto", home).engine == PLAIN


def test_an_engine_that_there_is_not_is_refused(home):
    with pytest.raises(UnknownValue, match="auto"):
        engine_for("dask", home)


def test_what_a_stage_raises_is_no_fault_of_prefect(bench, monkeypatch):
    decisions().write(bench.projects)

    def flow(stages, run):
        for _, work in stages:
            work(run)

    def fails(run):
        raise StoreNotWritable("the disk is full.", "Make room.")

    monkeypatch.setattr(runs, "_run_flow", flow)
    monkeypatch.setattr(runs, "configure_prefect", lambda home: None)
    monkeypatch.setattr(runs.atexit, "register", lambda function: None)
    monkeypatch.setattr(runs, "healing", lambda stage: fails)
    bench.stage()
    with pytest.raises(StoreNotWritable):
        bench.run(engine="prefect")
