"""Settings: who has the last word, what a change leaves of the file, what is refused."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.hooks.context_use import WARN_PERCENT
from cortex.hooks.hook_settings import HookSettings
from cortex.hooks.statusline import PARTS
from cortex.storage.settings.config_file import HOOK_SETTINGS, ConfigFile, publish_hook_settings
from cortex.storage.settings.setting_keys import BY_NAME, KEYS
from cortex.storage.settings.settings import load_settings, read_config
from cortex.transforms.errors import UsageError
from tests.examples import examples

MINE = """\
# what I chose
[brief]        # short ones
tokens = 800   # enough

[capture]
excluded_projects = [
    "/home/ada/diary",  # private
]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for key in KEYS:
        monkeypatch.delenv(key.variable, raising=False)
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("CORTEX_HOME", str(folder))
    return folder


def value(cortex, key, *words):
    told = cortex("config", "get", key, *words, "--json").json
    return told["value"], told["from"]


def test_the_environment_is_over_the_project_over_the_file_over_the_default(cortex, home, monkeypatch):
    assert value(cortex, "brief.tokens") == (0, "default")
    cortex("config", "set", "brief.tokens", "900")
    assert value(cortex, "brief.tokens") == (900, "config.toml")
    cortex("config", "set", "brief.tokens", "700", "--project", str(Path.cwd()))
    assert value(cortex, "brief.tokens") == (700, f'config.toml, project "{Path.cwd()}"')
    monkeypatch.setenv("CORTEX_BRIEF_TOKENS", "500")
    assert value(cortex, "brief.tokens") == (500, "CORTEX_BRIEF_TOKENS")
    assert load_settings().brief_tokens == 500


@pytest.mark.parametrize(
    ("key", "word", "form"),
    [
        ("brief.surface", "../../../escape.md", "a path in the project that ends in .md or .mdc"),
        ("brief.surface", "/etc/notes.md", "a path in the project that ends in .md or .mdc"),
        ("brief.surface", "docs/a\nb.md", "a path in the project that ends in .md or .mdc"),
        ("models.base_url", "https://a.example\nx: y", "one line that begins with https:// or http://"),
    ],
)
def test_what_leads_out_of_the_project_or_breaks_a_line_is_refused_with_the_form(
    cortex, home, key, word, form
):
    answer = cortex("config", "set", key, word)
    assert answer.code == 2 and f"Give {form}" in answer.err.replace("hook, rules, local or ", "")
    assert not (home / "config.toml").exists()


def test_a_projects_own_budget_is_that_of_its_brief(home):
    ConfigFile(home).set(BY_NAME["brief.tokens"], 700, "kiln-1")
    ConfigFile(home).set(BY_NAME["brief.tokens"], 600, "/home/ada/reef")
    chosen = load_settings(home)
    assert chosen.of_project("kiln-1", []).brief_tokens == 700
    assert chosen.of_project("reef-2", ["/home/ada/reef"]).brief_tokens == 600
    assert chosen.of_project("other", []).brief_tokens == chosen.brief_tokens == 0


def test_every_setting_is_listed_with_its_meaning_and_unit(cortex, home):
    listed = cortex("config", "--json").json["settings"]
    assert [one["key"] for one in listed] == list(BY_NAME)
    assert all(one["meaning"] and one["unit"] and one["variable"].startswith("CORTEX_") for one in listed)
    assert cortex("config", "list").out.count("(default)") == len(KEYS)


def test_a_key_is_never_shown(cortex, home, monkeypatch):
    cortex("config", "set", "embed.voyage_api_key", "pa-invented")
    answers = [
        cortex("config", "list"),
        cortex("config", "--json"),
        cortex("config", "get", "embed.voyage_api_key"),
        cortex("config", "set", "embed.voyage_api_key", "pa-invented", "--json"),
    ]
    assert not any("pa-invented" in answer.out + answer.err for answer in answers)
    assert load_settings().voyage_api_key == "pa-invented"
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-other")
    assert load_settings().voyage_api_key == "pa-other"


def test_comments_and_order_stay_when_a_setting_changes(cortex, home):
    path = home / "config.toml"
    path.write_text(MINE)
    cortex("config", "set", "brief.tokens", "900")
    assert path.read_text() == MINE.replace("800", "900")
    cortex("config", "set", "retention.days", "30")
    cortex("config", "unset", "retention.days")
    cortex("config", "set", "brief.tokens", "800")
    assert path.read_text().rstrip() == MINE.rstrip()


@pytest.mark.parametrize(
    "words",
    [
        ["brief.tokens", "-1"],
        ["brief.tokens", "3001"],
        ["brief.tokens", "many"],
        ["retention.days", "-1"],
        ["recall.at_prompt", "maybe"],
        ["statusline.show", "weather"],
        ["brief.tokns", "1"],
        ["retention.types", "gotcha"],
        ["retention.types", "gotcha=-3"],
        ["retention.types", "wish=3"],
        ["mcp.http_roles", "ada=king"],
        ["mcp.http_roles", "ada=reader@kelp"],
        ["mcp.calls_per_minute", "3", "--project", "/home/ada/kiln"],
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(cortex, home, words):
    answer = cortex("config", "set", "--json", *words[2:], "--", *words[:2])
    assert answer.code == 2 and answer.json["error"]["code"] == "CORTEX_E_USAGE"
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize(
    "text",
    [
        "[brief\n",
        "brief = 3\n",
        "[brief]\ntokens = true\n",
        "[brief]\ntokns = 3\n",
        "[speling]\na = 1\n",
        '[project."x"]\nbrief = 3\n',
        '[project."x".mcp]\ncalls_per_minute = 3\n',
        '[retention]\ntypes = ["gotcha=often"]\n',
        "[capture]\nexcluded_projects = [1]\n",
    ],
)
def test_a_file_that_is_wrong_says_so_and_is_not_written_over(cortex, home, text):
    path = home / "config.toml"
    path.write_text(text)
    answer = cortex("config", "set", "brief.tokens", "900", "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "CORTEX_E_USAGE"
    assert path.read_text() == text


def test_a_near_miss_is_named(cortex, home):
    assert (
        "Did you mean brief.tokens?"
        in cortex("config", "get", "brief.token", "--json").json["error"]["next_step"]
    )


def test_words_mean_what_the_environment_means(cortex, home, monkeypatch):
    cortex("config", "set", "statusline.show", "context", "memories")
    cortex("config", "set", "recall.at_prompt", "off")
    cortex("config", "set", "capture.excluded_projects", "/a:b", "/c d")
    assert load_settings().excluded_projects == ("/a:b", "/c d")
    cortex("config", "unset", "capture.excluded_projects")
    monkeypatch.setenv("CORTEX_CAPTURE_EXCLUDED_PROJECTS", "/a:/b c")
    told = tomllib.loads((home / "config.toml").read_text())
    assert told == {"statusline": {"show": ["context", "memories"]}, "recall": {"at_prompt": False}}
    assert load_settings().excluded_projects == ("/a", "/b c")
    monkeypatch.setenv("CORTEX_BRIEF_TOKENS", "a lot")
    with pytest.raises(UsageError, match="CORTEX_BRIEF_TOKENS"):
        load_settings()


CHOSEN = {
    "capture.excluded_projects": st.lists(st.text(max_size=9), max_size=3).map(tuple),
    "brief.tokens": st.integers(1, 3000),
    "recall.at_prompt": st.booleans(),
    "embed.voyage_api_key": st.text(max_size=9),
    "statusline.show": st.lists(st.sampled_from(PARTS), max_size=3).map(tuple),
}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None
)
@given(
    st.lists(
        st.sampled_from(sorted(CHOSEN)).flatmap(
            lambda n: st.tuples(st.just(n), CHOSEN[n], st.sampled_from([None, "kiln-1", '/home/ada/a.b "c"']))
        ),
        max_size=6,
    )
)
def test_what_was_set_is_what_is_read_and_unset_it_is_gone(home, changes):
    file, last = ConfigFile(home), {}
    file.path.unlink(missing_ok=True)
    for name, chosen, project in changes:
        project = project if BY_NAME[name].per_project else None
        file.set(BY_NAME[name], chosen, project)
        last[project, name] = chosen
    values, by_project = read_config(home)
    read = {(None, n): v for n, v in values.items()} | {
        (p, n): v for p, t in by_project.items() for n, v in t.items()
    }
    assert read == last
    for project, name in last:
        assert file.unset(BY_NAME[name], project)
    assert read_config(home) == ({}, {})


def test_hooks_are_handed_what_they_need_and_no_key(home):
    file = ConfigFile(home)
    file.set(BY_NAME["embed.voyage_api_key"], "pa-invented")
    file.set(BY_NAME["statusline.warn_percent"], 60)
    file.set(BY_NAME["recall.at_prompt"], False, "/home/ada/kiln")
    publish_hook_settings(home, {"/home/ada/kiln": "kiln-1"})
    told = json.loads((home / HOOK_SETTINGS).read_text())
    assert told == {"statusline.warn_percent": 60, "projects": {"kiln-1": {"recall.at_prompt": False}}}
    assert HookSettings(str(home), "kiln-1").is_on("recall.at_prompt", True) is False
    assert HookSettings(str(home), "other").is_on("recall.at_prompt", True) is True
    assert HookSettings(str(home), None).number("statusline.warn_percent", 70) == 60


def test_hooks_ask_their_environment_first(home, monkeypatch):
    publish_hook_settings(home, {})
    assert not (home / HOOK_SETTINGS).exists()
    monkeypatch.setenv("CORTEX_RECALL_AT_PROMPT", "off")
    monkeypatch.setenv("CORTEX_STATUSLINE_SHOW", "context, memories")
    chosen = HookSettings(str(home), None)
    assert chosen.is_on("recall.at_prompt", True) is False
    assert chosen.words("statusline.show", PARTS) == ("context", "memories")


def test_hooks_and_the_table_agree_on_the_defaults():
    assert BY_NAME["statusline.show"].default == PARTS
    assert BY_NAME["statusline.warn_percent"].default == WARN_PERCENT
