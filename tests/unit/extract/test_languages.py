"""What a sentence is does not depend on its language."""

import re
import time

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.language.lexicon import WORD_TABLES, Lexicon
from cortex.transforms.extract.language.phrases import spoken_in
from cortex.transforms.words.sentences import latin_length
from tests.examples import cases
from tests.languages import KINDS, LANGUAGES, NOTHING
from tests.sessions import prompt, session, text

POLICY = read_policy(None)
LEXICON = Lexicon.of(POLICY)
CASES = [
    pytest.param(language, kind, speaker, sentences[language], id=f"{language}-{kind}-{number}")
    for number, (kind, speaker, sentences) in enumerate(KINDS)
    for language in LANGUAGES
]
SILENT = [
    pytest.param(language, phrase, sentences[language], id=f"{language}-{phrase}-{number}")
    for number, (phrase, sentences) in enumerate(NOTHING)
    for language in LANGUAGES
]


@cases(("language", "kind", "speaker", "sentence"), CASES)
def test_a_sentence_is_the_same_kind_in_every_language(language, kind, speaker, sentence):
    spoken = LEXICON.speaking([language])
    if speaker == "user":
        assert spoken.kind_of(sentence)[0] == kind
    else:
        marked = spoken.marked_in(sentence)
        assert marked is not None and marked.event_type == kind


@cases(("language", "phrase", "sentence"), SILENT)
def test_small_talk_is_known_in_every_language(language, phrase, sentence):
    assert getattr(LEXICON.speaking([language]).phrases, phrase).search(sentence)


@cases("language", LANGUAGES)
def test_what_states_something_is_no_small_talk(language):
    phrases = LEXICON.speaking([language]).phrases
    statements = [sentences[language] for _, speaker, sentences in KINDS if speaker == "assistant"]
    assert [words for words in statements if phrases.announces.search(words)] == []
    assert [words for words in statements if phrases.filler.match(words)] == []


@cases("language", LANGUAGES)
def test_the_language_of_a_session_is_known_by_its_small_words(language):
    said = [sentences[language] for _, _, sentences in KINDS]
    assert spoken_in(said, LEXICON.small_words) == {language} - {"en"}


def test_a_name_is_no_language():
    said = ["The Los Angeles cluster is down and we use the des cipher for it, not AES", "Keep it this way"]
    assert spoken_in(said, LEXICON.small_words) == frozenset()


def test_orders_in_several_languages_in_one_paragraph_are_one_fact_each():
    orders = [
        "Wir nehmen Docker für den Server, weil es überall läuft.",
        "Nous utilisons toujours Redis pour le cache, jamais Memcached.",
        "我们决定使用 SQLite 保存读数，不用 PostgreSQL。",
        "Keep the old name of the module for the harbour.",
    ]
    turns = session(prompt(" ".join(orders)), text("OK, verstanden. D'accord. 好的。"))
    rows = extract_events(turns, POLICY).to_pylist()
    assert {row["text"] for row in rows if row["memory_type"] == "decision"} == set(orders)


@pytest.mark.parametrize("language", ["de", "fr"])
def test_a_paragraph_in_one_language_stays_whole(language):
    paragraphs = {
        "de": "Wir nehmen Docker für den Server. Das ist mit uv gebaut. pytest läuft auch dort.",
        "fr": "Nous prenons Docker pour le serveur. Il est dans le cache de uv. pytest marche aussi.",
    }
    assert LEXICON.runs_by_language(paragraphs[language]) == [(paragraphs[language], LEXICON)]


def wishes_and_choices(language):
    said = [(speaker, sentences[language]) for _, speaker, sentences in KINDS[:9]]
    turns = [prompt(words) if speaker == "user" else text(words) for speaker, words in said]
    rows = extract_events(session(*turns), POLICY).to_pylist()
    kinds = ("PREFERENCE_NOTED", "DECISION_MADE")
    return [sum(row["event_type"] == kind for row in rows) for kind in kinds]


@cases("language", LANGUAGES)
def test_the_same_session_gives_as_many_wishes_and_choices_in_every_language(language):
    assert wishes_and_choices(language) == wishes_and_choices("en")


@cases("language", LANGUAGES)
def test_lengths_compare_across_scripts(language):
    def length(name):
        return sum(latin_length(sentences[name]) for _, _, sentences in KINDS)

    assert 0.7 < length(language) / length("en") < 1.35


HOSTILE = (
    "a",
    "a ",
    "nie ",
    "!",
    "ok, ",
    "不要",
    "設定を",
    "확인 ",
    "her zaman ",
    "n'a ",
    "¿que ",
    "`a-b/c ",
    "  ",
)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "es", "fr", "pt", "zh", "ja", "ko", "tr"])
def test_no_pattern_takes_more_than_linear_time(language):
    tables = [POLICY.tables[name].to_pylist() for name in WORD_TABLES if name != "language_words"]
    patterns = [row["pattern"] for rows in tables for row in rows if row["language"] == language]
    compiled = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    for part in HOSTILE:
        start = time.process_time()
        for pattern in compiled:
            pattern.search(part * (30_000 // len(part)))
        # All patterns of a language take .3 s for 30,000 characters, one that takes the square 18 s and more.
        assert time.process_time() - start < 1.5
