"""Words, lengths and sentence ends in scripts that part no words."""

import pytest

from cortex.transforms.words.sentences import (
    LINE,
    MEMORY,
    PROSE,
    is_question,
    latin_length,
    long_words,
    sentences,
    shortened,
)
from tests.examples import cases


@cases(
    ("text", "words"),
    [
        ("Keep the cache small", {"keep", "cache", "small"}),
        ("Größe über alles, Füße", {"größe", "über", "alles", "füße"}),
        ("la opción está vacía", {"opción", "está", "vacía"}),
        ("değişken yanlış", {"değişken", "yanlış"}),
        ("設定画面", {"設定", "定画", "画面"}),
        ("设置cache目录", {"设置", "cache", "目录"}),
        ("커밋을 되돌려 커밋이", {"커밋", "되돌려"}),
        ("これはそれです", set()),
    ],
)
def test_every_script_has_words(text, words):
    assert long_words(text) == words


def test_a_sign_says_as_much_as_two_letters_or_more():
    assert latin_length("Use pnpm here") == 13
    assert latin_length("キャッシュ") == 10
    assert latin_length("커밋") == 4
    assert latin_length("使用缓存") == 11


@pytest.mark.parametrize("rule", [PROSE, LINE, MEMORY])
def test_a_wide_stop_ends_a_sentence_without_a_space(rule):
    assert sentences("設定は画面にある。保存は自動だ。", rule) == ["設定は画面にある。", "保存は自動だ。"]


def test_a_quotation_that_goes_on_is_one_sentence():
    assert sentences("彼は「保存した。」と言った。次へ進む。", PROSE) == [
        "彼は「保存した。」と言った。",
        "次へ進む。",
    ]


def test_sentences_may_open_with_letters_that_english_lacks():
    assert sentences("Das ist so. Überall gilt das.", PROSE) == ["Das ist so.", "Überall gilt das."]
    assert sentences("Listo. ¿Qué sigue?", PROSE) == ["Listo.", "¿Qué sigue?"]
    assert sentences("Bitte z. B. hier. Sonst nie.", PROSE) == ["Bitte z. B. hier.", "Sonst nie."]


@cases("asked", ["Is it?", "これでいいですか。", "可以吗", "このままで？", "¿Seguimos?", "Geht das? "])
def test_questions_are_known_in_every_script(asked):
    assert is_question(asked)


def test_what_states_asks_nothing():
    assert not any(map(is_question, ("Keep it.", "保存します。", "就这样。")))


def test_a_text_without_spaces_is_cut_near_its_limit():
    text = "Next.js " + "設定画面を開くと保存される" * 10
    assert len(shortened(text, 60)) > 50
    assert shortened("one two three", 9) == "one two…"
