"""No made secret gets through, from hooks to backups; without redaction the same search finds them."""

from benchmarks import secret_shapes
from benchmarks.canary_kinds import CANARY, KINDS, canary
from benchmarks.canary_search import canaries_in
from benchmarks.missed_secrets import missed
from cortex.transforms.redaction.redact import default_redactor, redact
from tests.examples import cases
from tests.unit.transforms.redaction import test_shapes

# Rules of detect-secrets for 24 lower-case letters after a name of Cloudant's: that is taken for a word.
NOT_FOLLOWED = 2


@cases("kind", KINDS)
def test_every_kind_is_found_as_it_is_planted_and_gone_when_redacted(kind):
    text = canary(kind, 4_711)
    assert canaries_in(text.encode()) == canaries_in(text.encode("utf-16-le")) == {4_711}
    assert not CANARY.search(redact(f"see {text} there")[0].casefold())


LISTS = test_shapes.TOKENS + test_shapes.GIVEN + test_shapes.IN_PLACE + test_shapes.IN_WORDS


def test_every_rule_has_a_canary():
    rules = default_redactor()._rules
    texts = [canary(kind, 1).encode() for kind in KINDS] + [
        text.encode() for _, _, text in secret_shapes.texts()
    ]
    texts += [text.encode() for text, _ in test_shapes.texts_of(LISTS)]
    unmet = [rule for rule in rules if not any(rule.pattern.search(text) for text in texts)]
    assert len(unmet) == NOT_FOLLOWED, [rule.pattern.pattern for rule in unmet]


# A key of Django's, with brackets inside and no quotes around it, ends to some rules at the first of them. An
# id of a key and a signature of one message look like any hash, and open nothing.
KNOWN_MISSES = {
    "SECRET_KEY": ["properties", "address"],
    "BigQuery key": ["in its place"],
    "HMAC header": ["in its place"],
}


def test_every_documented_shape_is_found_in_every_carrier_but_for_those_named():
    found, shapes, count = missed()
    assert found == KNOWN_MISSES
    assert shapes >= 348 and count > 1_660
