"""A count of tokens without a vocabulary is near the true one for each kind of text."""

import pytest

from cortex.hooks.tokens import tokens_in
from tests.examples import cases

# Tokens by the vocabulary that Anthropic published last; what its models count is 1.05 times that.
COUNTED = (
    (25, "The importer keeps raw payloads for a week, because the vendor resends them without notice and"
         " nobody can tell when."),
    (43, "Run `uv run pytest -q tests/importer/test_replay.py -k late_payloads` before each release; CI does"
         " not (see .github/workflows/check.yml:41)."),
    (41, "def replay(self, since: datetime, *, batch_size: int = 500) -> Iterator[Payload]:\n"
         "    return chain.from_iterable(self._pages(since, batch_size))"),
    (48, "取り込み処理は生データを一週間保存する。"
         "ベンダーが予告なく再送するため、削除は日次ジョブだけが行う。"),
    (38, "导入器将原始数据保留一周，因为供应商会在没有通知的情况下重新发送，"
         "所以只有每日任务可以删除它们。"),
    (57, "가져오기 프로그램은 원본 데이터를 일주일 동안 보관한다."
         " 공급업체가 예고 없이 다시 보내기 때문이다."),
    (27, "El importador guarda los datos originales durante una semana, porque el proveedor los reenvía"
         " sin avisar."),
    (50, "Импортёр хранит исходные данные неделю, потому что поставщик присылает их"
         " повторно без предупреждения."),
)  # fmt: skip


@cases(("tokens", "text"), COUNTED)
def test_one_sentence_is_counted_within_a_fifth_or_so(tokens, text):
    assert tokens_in(text) == pytest.approx(1.05 * tokens, rel=0.21)


def test_several_sentences_are_counted_within_a_tenth():
    text = "\n".join(text for _, text in COUNTED)
    assert tokens_in(text) == pytest.approx(1.05 * sum(tokens for tokens, _ in COUNTED), rel=0.1)


def test_nothing_makes_no_token_and_blanks_join_what_follows():
    assert tokens_in("") == tokens_in("    ") == 0
    assert tokens_in("    return rows") == tokens_in("return rows")
