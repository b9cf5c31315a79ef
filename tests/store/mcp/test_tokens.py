"""Which access tokens count: the identity provider's, for this server, in force, signed by its keys."""

import base64
import json
import time
from collections.abc import Iterator

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from cortex.mcp.protocol.access import allows, needed_scope
from cortex.mcp.protocol.client import folders_seen_by
from cortex.mcp.tokens import (
    COOLDOWN_SECONDS,
    LEEWAY_SECONDS,
    ProviderAway,
    TokenChecker,
    TokenRefused,
    is_trustworthy,
    token_scopes,
)
from cortex.transforms.errors import UsageError
from tests.examples import cases
from tests.identity_provider import RESOURCE, Provider, provider_on_loopback


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with provider_on_loopback() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    """Return the provider as at its start."""
    running.is_away = False
    running.document = {"issuer": running.issuer, "jwks_uri": f"{running.issuer}/keys"}
    running.rotate("first")
    running.asked.clear()
    return running


@pytest.fixture
def checker(provider: Provider) -> TokenChecker:
    return TokenChecker(provider.issuer, RESOURCE)


def unsigned(claims: dict[str, object], **header: object) -> str:
    parts = ({"typ": "at+jwt", **header}, claims)
    return ".".join(encoded(json.dumps(part).encode()) for part in parts)


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def public_pem(provider: Provider) -> bytes:
    [key] = provider.private.values()
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key.public_key().public_bytes(*form)


def test_a_good_token_says_who_through_what_and_with_which_scopes(provider, checker):
    token = checker.check(provider.token(scope="memory:read memory:write"))
    assert (token.subject, token.client_id) == ("ada", "editor")
    assert token.scopes == ["memory:read", "memory:write"]
    assert token.resource == RESOURCE


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://id.example.org"},
        {"aud": "https://other.example.org/mcp"},
        {"aud": "editor"},  # an ID token is for its client
        {"aud": None},
        {"exp": None},
        {"sub": None},
        {"exp": "soon"},
        {"cnf": {"jkt": "x"}},
    ],
    ids=str,
)
def test_a_token_with_a_claim_that_is_wrong_is_refused(provider, checker, changed):
    with pytest.raises(TokenRefused):
        checker.check(provider.token(**changed))


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -LEEWAY_SECONDS - 60), ("nbf", LEEWAY_SECONDS + 600)])
def test_a_token_past_its_end_or_before_its_beginning_is_refused(provider, checker, claim, seconds):
    with pytest.raises(TokenRefused):
        checker.check(provider.token(**{claim: int(time.time()) + seconds}))


def test_clocks_may_differ_by_the_leeway(provider, checker):
    assert checker.check(provider.token(exp=int(time.time()) - LEEWAY_SECONDS // 2))


@pytest.mark.parametrize("audience", [RESOURCE + "/", [RESOURCE, "https://other.example.org"]])
def test_an_audience_is_an_address_or_several(provider, audience):
    checker = TokenChecker(provider.issuer, RESOURCE if isinstance(audience, list) else audience)
    assert checker.check(provider.token(aud=audience))


@pytest.mark.parametrize("typ", ["logout+jwt", "dpop+jwt", "secevent+jwt"])
def test_what_is_no_access_token_is_refused(provider, checker, typ):
    with pytest.raises(TokenRefused, match="not an access token"):
        checker.check(provider.token({"typ": typ}))


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "application/at+jwt"])
def test_providers_name_access_tokens_differently(provider, checker, typ):
    assert checker.check(provider.token({"typ": typ}))


def test_a_token_without_a_signature_or_of_another_key_is_refused(provider, checker):
    claims = provider.claims()
    other = generate_private_key(SECP256R1())
    forged = [
        unsigned(claims, alg="none") + ".",
        unsigned(claims, alg="ES256", kid="first") + ".AAAA",
        jwt.encode(claims, "s" * 40, "HS256", {"kid": "first"}),
        jwt.encode(claims, other, "ES256", {"kid": "first"}),
        jwt.encode(claims, other, "ES256", {"kid": "mine"}),
        jwt.encode(claims, other, "ES256"),
        "",
        "a.b.c",
        "x" * 20_000,
    ]
    for token in forged:
        with pytest.raises(TokenRefused):
            checker.check(token)


def test_the_public_key_is_no_shared_secret(provider, checker):
    """HS256 with the published key as its secret: what a server that trusts the header would accept."""
    import hashlib
    import hmac

    body = unsigned(provider.claims(), alg="HS256", kid="first")
    signature = hmac.new(public_pem(provider), body.encode(), hashlib.sha256).digest()
    with pytest.raises(TokenRefused, match="algorithm"):
        checker.check(f"{body}.{encoded(signature)}")


def test_keys_are_fetched_once_and_a_new_one_is_looked_for_after_a_while(provider, checker, monkeypatch):
    for _ in range(5):
        checker.check(provider.token())
    assert provider.asked == {"/.well-known/openid-configuration": 1, "/keys": 1}
    provider.rotate("second")
    for _ in range(5):  # whoever invents names of keys does not make the server ask
        with pytest.raises(TokenRefused):
            checker.check(provider.token())
    assert provider.asked["/keys"] == 1
    now = time.monotonic()
    monkeypatch.setattr("jwt.jwks_client.time.monotonic", lambda: now + COOLDOWN_SECONDS + 1)
    assert checker.check(provider.token()).subject == "ada"
    assert provider.asked["/keys"] == 2


def test_while_the_provider_is_away_nothing_is_said_of_a_token_and_it_is_not_stormed(provider):
    now = [0.0]
    checker = TokenChecker(provider.issuer, RESOURCE, clock=lambda: now[0])
    provider.is_away = True
    for _ in range(5):
        with pytest.raises(ProviderAway):
            checker.check(provider.token())
    assert provider.asked["/.well-known/openid-configuration"] == 1
    provider.is_away, now[0] = False, COOLDOWN_SECONDS + 1
    assert checker.check(provider.token())


@pytest.mark.parametrize(
    "changed",
    [{"issuer": "https://id.example.org"}, {"jwks_uri": "http://id.example.org/keys"}, {"jwks_uri": 5}],
    ids=str,
)
def test_a_provider_that_describes_another_or_keys_without_tls_is_not_believed(provider, checker, changed):
    provider.document |= changed
    with pytest.raises(ProviderAway):
        checker.check(provider.token())


@pytest.mark.parametrize("issuer", ["http://id.example.org", "http://localhost.example.org", "ftp://x"])
def test_a_provider_without_tls_is_refused_before_anything_is_served(issuer):
    with pytest.raises(UsageError, match="not https"):
        TokenChecker(issuer, RESOURCE)


def test_addresses_on_this_machine_and_https_can_be_trusted():
    good = ("https://id.example.org", "http://127.0.0.1:9/x", "http://[::1]:9", "http://localhost:80")
    assert all(map(is_trustworthy, good))
    assert not any(map(is_trustworthy, ("http://127.0.0.1.example.org", "http://[::1", "", "https://")))


def test_scopes_stand_in_a_text_or_a_list():
    assert token_scopes({"scope": "a b"}) == token_scopes({"scp": ["a", "b"]}) == token_scopes({"scp": "a b"})
    assert token_scopes({"scope": 5}) == token_scopes({}) == []
    # A blank alone parts them (RFC 6749, 3.3).
    assert token_scopes({"scope": "a\u00a0admin\u2028admin\tadmin"}) == ["a\u00a0admin\u2028admin\tadmin"]


@cases(
    ("request_of", "needed"),
    [
        (("tools/list",), ""),
        (("initialize",), ""),
        (("tools/call", "recall"), "memory:read"),
        (("tools/call", "no such tool"), "memory:read"),
        (("resources/read",), "memory:read"),
        (("completion/complete",), "memory:read"),
        (("tools/call", "learn"), "memory:write"),
        (("tools/call", "consolidate"), "memory:read"),
        (("tools/call", "consolidate", {"plan": "1f"}), "memory:delete"),
    ],
)
def test_a_request_needs_a_scope(request_of, needed):
    assert needed_scope(*request_of) == needed
    assert allows({"admin"}, needed) and allows(None, needed)
    assert allows({"memory:write"}, needed) == (needed in ("", "memory:write"))


def test_callers_see_what_is_listed_for_all_and_for_them():
    listed = ("/srv/api", "ada=/srv/a=b", "bob=*", "~/notes", "=/nobody", "ada=")
    assert folders_seen_by("ada", listed) == ("/srv/api", "~/notes", "/srv/a=b")
    assert folders_seen_by("bob", listed) == ("/srv/api", "~/notes", "*")
    assert folders_seen_by("eve", ("bob=*",)) == ()
