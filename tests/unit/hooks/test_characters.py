"""What cannot be seen, and what steers a terminal, is taken out of text; ordinary text stays as it is."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cortex.hooks.prose import plain
from cortex.hooks.prose.characters import escaped, visible
from tests.examples import cases

ROOT = Path(__file__).parents[3]

ORDINARY = {
    "English": "The reader's “budget” is 5 ms – no more… naïve café, €5, x² ≤ 10 °C",
    "German": "Größe der Übersicht: straße → weiß",
    "Vietnamese, decomposed": "tie\u0302\u0301ng Vie\u0323\u0302t",
    "Greek": "Η ταχύτητα του αναγνώστη",
    "Russian": "Читатель хранит одну строку на ход",
    "Hebrew": "הקורא שומר שורה אחת לכל תור",
    "Arabic": "القارئ يحتفظ بسطر واحد لكل دور",
    "Persian, with its joiner": "می\u200cخواهم کتاب\u200cها را بخوانم",
    "Hindi, with its joiner": "क्\u200dष और र्\u200dय",
    "Sinhala, with its joiner": "ශ්\u200dරී ලංකා",
    "Bengali": "পাঠক প্রতি পালায় একটি সারি রাখে",
    "Thai": "ตัวอ่านเก็บหนึ่งแถวต่อรอบ",
    "Khmer": "អ្នកអានរក្សាមួយជួរ",
    "Mongolian, with its selector": "ᠮᠣᠩᠭᠣᠯ\u180bᠠ",
    "Chinese": "读取器每轮保留一行，编码“UTF-8”。",
    "Japanese": "リーダーは１行ずつ保持します。ＡＢＣ",
    "Korean": "판독기는 차례마다 한 줄을 유지합니다",
    "emoji": "👍🏽 ✅ ⚠️ ❤️ ☎︎ 1️⃣ #️⃣ 🇩🇪 🫡",
    "joined emoji": "👨\u200d👩\u200d👧 🧑🏿\u200d🚀 ❤️\u200d🔥 🏳️\u200d🌈 👁️\u200d🗨️",
    "flag of tags": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f England",
    "boxes and arrows": "┌─┐ │ ▶ ⇒ ✓ ✗ █▓░",
}
HOSTILE = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "cursor": ("a\x1b[2J\x1b[1;1Hb", "ab"),
    "title": ("\x1b]0;owned\x07a", "a"),
    "link": ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
    "link left open": ("\x1b]8;;https://evil.example", " ]8;;https://evil.example"),
    "C1 sequence": ("\x9b31mred\x9d0;owned\x9c", "red"),
    "device string": ("a\x1bPq#0\x1b\\b", "ab"),
    "reset": ("a\x1bcb", "ab"),
    "nested": ("\x1b[3\x1b[0m1mred", " [31mred"),
    "backspace": ("ok\x08\x08no", "ok no"),
    "bell and null": ("a\x07\x00b", "a b"),
    "right to left": ("a\u202eb\u202c\u2067c\u2069", "abc"),
    "marks of direction": ("a\u200eb\u200fc\u061cd", "abcd"),
    "zero width": ("ig\u200bno\u2060re\ufeff", "ignore"),
    "joiner in Latin": ("ig\u200dno\u200cre", "ignore"),
    "soft hyphen": ("ig\u00adnore", "ignore"),
    "grapheme joiner": ("ig\u034fnore", "ignore"),
    "tags": ("a\U000e0001\U000e0068\U000e0069b", "ab"),
    "tags behind a flag": ("🏴\U000e0068\U000e0069\U000e007f", "🏴"),
    "selectors in Latin": ("a\ufe00b\ufe0fc\ufe0ed", "abcd"),
    "selectors with a message": ("😀\ufe0f\U000e0158\U000e0155", "😀"),
    "many selectors": ("😀\ufe0f\ufe0e\ufe0f\ufe0fa", "😀a"),
    "ideographic selectors": ("葛\U000e0100", "葛"),
    "blank letters": ("a\u3164b\u2800c\u115f\u1160d\uffa0e", "a b cd e"),
    "private use": ("a\ue000\U000f0001b", "ab"),
    "half of a pair": ("a\ud83db", "ab"),
}


@cases("name", ORDINARY)
def test_ordinary_text_is_unchanged(name):
    text = ORDINARY[name]
    assert visible(text) == visible(text, keeps_lines=True) == text
    assert plain.on_one_line(text) == text


@cases("name", HOSTILE)
def test_what_cannot_be_seen_is_taken_out(name):
    text, seen = HOSTILE[name]
    assert visible(text) == visible(text, keeps_lines=True) == seen


def test_lines_and_tabs_stay_where_they_are_wanted():
    assert visible("a\r\n\tb\rc\n", keeps_lines=True) == "a\n\tb c\n"
    assert visible("a\r\n\tb\u2028c\n") == "a b c "


@given(st.text(st.characters()))
def test_nothing_odd_is_left_and_a_second_time_changes_nothing(text):
    once = visible(text)
    assert visible(once) == once
    assert not any(_is_odd(character) for character in once)


def _is_odd(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f" or "\u202a" <= character <= "\u202e"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escaped_json_means_the_same_and_has_nothing_odd(text):
    printed = escaped(json.dumps({"text": text}, ensure_ascii=False, indent=2))
    assert json.loads(printed) == {"text": text}
    assert not any(_is_odd(character) for character in printed.replace("\n", ""))
