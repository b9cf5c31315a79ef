"""What every test has: a store of its own and an environment without the user's settings."""

import gc
import shutil
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from cortex.transforms import errors
from tests.examples import HAS_EVERY_CASE, IS_FULL

CONTAINED_AS_IN_USE = errors.NEVER_CONTAINED
TESTS = Path(__file__).parent
SLOW_FOLDERS = ("whole", "client")
NUMBERS = count()
REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


settings.load_profile("full" if IS_FULL else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make slow what lies in a slow folder, and all cases but one of tests whose first alone is quick."""
    begun: set[tuple[Path, str]] = set()
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS:
            item.add_marker("slow")
        if item.get_closest_marker("first_is_quick") and not item.get_closest_marker("slow"):
            test = item.path, item.nodeid.partition("[")[0]
            if test in begun:
                item.add_marker("slow")
            begun.add(test)
    if not HAS_EVERY_CASE:
        _leave_out_what_lies_between(items)


def _leave_out_what_lies_between(items: list[pytest.Item]) -> None:
    """Keep of the cases of a test marked `spread` as many as it says, from its first to its last."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("spread"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for test in cases.values():
        mark = test[0].get_closest_marker("spread")
        assert mark is not None
        last, steps = len(test) - 1, max(mark.args[0] - 1, 1)
        left_out.update({*test} - {test[last * step // steps] for step in range(steps + 1)})
    if left_out:
        items[0].config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Spare the collector what lives as long as the tests: a full pass over it takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_user() -> Iterator[None]:
    """Let no test see a key or a setting of the user's."""
    with pytest.MonkeyPatch.context() as environment:
        for name in (
            "VOYAGE_API_KEY",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CORTEX_INTERNAL",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_PLUGIN_DATA",
        ):
            environment.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def _own_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, unused: Path) -> None:
    """Give each test a home of its own; the folder is made only for a test that asks for one."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else unused
    monkeypatch.setenv("CORTEX_HOME", str(folder / "cortex-home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))  # the key of exports


@pytest.fixture
def unused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a path of this test's own, if nothing is."""
    return tmp_path_factory.getbasetemp() / f"unused-{next(NUMBERS)}"


@pytest.fixture(autouse=True)
def _faults_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be contained: what a test meets is known, so a fault in it is a bug of ours."""
    monkeypatch.setattr(errors, "NEVER_CONTAINED", (Exception,))


@pytest.fixture
def contained_faults(monkeypatch: pytest.MonkeyPatch, _faults_show: None) -> None:
    """Contain faults as a user's run does."""
    monkeypatch.setattr(errors, "NEVER_CONTAINED", CONTAINED_AS_IN_USE)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder of the test's store."""
    return tmp_path / "cortex-home"


@pytest.fixture
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the test's transcripts: empty, and in the same place in every test."""
    folder = tmp_path_factory.getbasetemp() / "projects"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real transcripts; skip, saying so, if there is none."""
    if not (REAL_DATA / "transcripts").is_dir():
        pytest.skip(
            f"the real transcripts are not here ({REAL_DATA.name}/transcripts is missing beside the project)"
        )
    return REAL_DATA
