"""Canaries: one made secret of every kind that a redaction rule knows, each found again by its number."""

import random
import re
from dataclasses import dataclass

# What every canary has inside, in lower case; no text of ours has it. Where only hexadecimal digits may stand
# it is spelt with them. Five digits of the canary's number follow.
MARK, HEX_MARK = "qx7k", "c0ffee7"
CANARY = re.compile(rf"(?:{MARK}|{HEX_MARK})([0-9a-f]{{5}})")

HEX = "0123456789abcdef"
UPPER = "ABCDEFGHJKLMNPRSTUVWXYZ"
LOWER = UPPER.lower()
ALNUM = UPPER + LOWER + "0123456789"


@dataclass(frozen=True)
class Kind:
    """A kind of secret: `form` with S in its place, made of `alphabet`, `length` characters long."""

    name: str
    form: str
    alphabet: str = ALNUM
    length: int = 40


def canary(kind: Kind, number: int) -> str:
    """Return the text that holds canary `number` of a kind; the same number gives the same text."""
    chance = random.Random(number)
    mark = HEX_MARK if kind.alphabet == HEX else MARK
    core = f"{mark}{number:05x}"
    core = core.upper() if kind.alphabet == UPPER else core
    rest = [chance.choice(kind.alphabet) for _ in range(kind.length - len(core))]
    middle = len(rest) // 2
    return kind.form.replace("<S>", "".join(rest[:middle]) + core + "".join(rest[middle:]))


def _pem(name: str, begin: bool = True, end: bool = True) -> str:
    head = [f"-----BEGIN {name}-----"] if begin else []
    return "\n".join(
        [*head, "MIIEowIBAAKCAQEAuVq3aB3caB3caB3caB3caB3caB3caB3caB3caB3caB3caB3c", "<S>"]
        + ([f"-----END {name}-----"] if end else [])
    )


KINDS = (
    Kind("private key", _pem("RSA PRIVATE KEY"), length=64),
    Kind("private key, end cut off", _pem("PRIVATE KEY", end=False), length=64),
    Kind("private key, beginning cut off", _pem("EC PRIVATE KEY", begin=False), length=64),
    Kind("PuTTY key", "Private-Lines: 2\n<S>\n<S>\nPrivate-MAC: 0f", length=64),
    Kind("Anthropic", "sk-ant-api03-<S>", length=90),
    Kind("OpenAI by project", "sk-proj-<S>", length=60),
    Kind("OpenAI", "sk-<S>", length=48),
    Kind("OpenAI with its mark", "sk-<S>T3BlbkFJ" + "a1B2" * 5, length=20),
    Kind("GitHub fine-grained", "github_pat_<S>", length=82),
    Kind("GitHub", "ghp_<S>", length=36),
    Kind("GitLab", "glpat-<S>", length=20),
    Kind("GitLab runner", "GR1348941<S>", length=20),
    Kind("GitLab build", "glcbt-64_<S>", length=22),
    Kind("GitLab mail", "glimt-<S>", length=25),
    Kind("GitLab trigger", "glptt-<S>", length=40),
    Kind("GitLab agent", "glagent-<S>", length=52),
    Kind("GitLab OAuth", "gloas-<S>", length=64),
    Kind("Slack", "xoxb-123456789012-<S>", length=30),
    Kind("Slack app", "xapp-1-<S>", length=40),
    Kind("Slack bot, lower case", "xoxb-12345-67890-<S>", LOWER + "0123456789", 24),
    Kind("Slack webhook", "https://hooks.slack.com/services/T0AB/B0CD/<S>", length=24),
    Kind("Hugging Face", "hf_<S>", length=34),
    Kind("npm", "npm_<S>", length=36),
    Kind("npm registry", "//registry.npmjs.org/:_authToken=<S>", HEX, 36),
    Kind("Google API", "AIza<S>", length=35),
    Kind("Google access", "ya29.<S>", length=60),
    Kind("Google client secret", "GOCSPX-<S>", length=28),
    Kind("Stripe", "sk_live_<S>", length=24),
    Kind("Stripe webhook", "whsec_<S>", length=32),
    Kind("SendGrid", "SG.abcdefghijklmnopq12345.<S>", length=43),
    Kind("DigitalOcean", "dop_v1_<S>", HEX, 64),
    Kind("Voyage", "pa-<S>", length=43),
    Kind("Groq", "gsk_<S>", length=52),
    Kind("xAI", "xai-<S>", length=80),
    Kind("Perplexity", "pplx-<S>", length=48),
    Kind("Replicate", "r8_<S>", length=37),
    Kind("Vault", "hvs.<S>", length=90),
    Kind("Linear", "lin_api_<S>", length=40),
    Kind("Notion", "ntn_<S>", length=46),
    Kind("Databricks", "dapi<S>", HEX, 32),
    Kind("Shopify", "shpat_<S>", HEX, 32),
    Kind("Supabase", "sbp_<S>", HEX, 40),
    Kind("Doppler", "dp.pt.<S>", length=43),
    Kind("Sentry", "sntrys_<S>", length=60),
    Kind("age", "AGE-SECRET-KEY-1<S>", UPPER, 58),
    Kind("Discord webhook", "https://discord.com/api/webhooks/1234567890/<S>", length=68),
    Kind("Discord bot", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.<S>", length=27),
    Kind("PyPI", "pypi-AgEIcHlwaS5vcmc<S>", length=80),
    Kind("PyPI test", "pypi-AgENdGVzdC5weXBpLm9yZw<S>", length=80),
    Kind("JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.<S>", length=43),
    Kind("JWT, encrypted", "eyJhbGciOiJkaXIi.<S>.a1b2.c3d4.e5f6", length=43),
    Kind("AWS id", "AKIA<S>", UPPER, 16),
    Kind("AWS secret", "aws_secret_access_key = <S>", length=40),
    Kind("AWS key in quotes", "aws deploy token: '<S>'", length=40),
    Kind("AWS answer", '"SecretAccessKey": "<S>"', length=40),
    Kind("Azure storage", "DefaultEndpointsProtocol=https;AccountKey=<S>;", length=86),
    Kind("Azure signature", "https://a.blob.core.windows.net/c?sv=2024-01-01&sig=<S>%3D", length=43),
    Kind("Azure client secret", "abc8Q~<S>", length=34),
    Kind("password in an address", "postgres://admin:<S>@db.internal:5432/app", length=20),
    Kind("authorization header", "Authorization: Bearer <S>", length=40),
    Kind("bearer alone", "Bearer <S>", length=40),
    Kind("curl", "curl -s -u admin:<S> https://api.internal/", length=18),
    Kind("connection string", "Server=db;User Id=app;Password=<S>;Timeout=3", length=16),
    Kind("SQL user", "CREATE USER app IDENTIFIED BY '<S>'", length=16),
    Kind("env line", "\nDB_PASSWORD=<S>\n", length=16),
    Kind("token in env", "\nexport API_TOKEN=<S>\n", length=24),
    Kind("name and quoted value", 'api_key = "<S>"', length=24),
    Kind("name and bare value", "\npassword: <S>\n", length=16),
    Kind("flag", "tool --password <S> --verbose", length=16),
    Kind("Artifactory", "key AKC<S> end", length=60),
    Kind("Artifactory password", "key AP6<S> end", length=60),
    Kind("Cloudant", "cloudant_password = <S>", HEX, 64),
    Kind("Cloudant address", "https://app:<S>@app.cloudant.com", HEX, 64),
    Kind("IBM", "ibm_cloud_iam_key: <S>", length=44),
    Kind("IBM COS", "cos_hmac_secret_access_key = <S>", HEX, 48),
    Kind("Mailchimp", "<S>-us12", LOWER + "0123456789", 32),
    Kind("SoftLayer", "softlayer_api_key = <S>", LOWER + "0123456789", 64),
    Kind("SoftLayer address", "https://api.softlayer.com/soap/v3/<S>", LOWER + "0123456789", 64),
    Kind("Square", "sq0csp-<S>", length=43),
    Kind("Telegram", "123456789:<S>", length=35),
    Kind("Twilio account", "AC<S>", LOWER + "0123456789", 32),
    Kind("Twilio key", "SK<S>", LOWER + "0123456789", 32),
)
