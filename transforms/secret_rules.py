"""Shapes of secrets beyond those of detect-secrets, and the words that tell them from stand-ins, as data."""

from typing import NamedTuple


class Rule(NamedTuple):
    """
    One shape of a secret.

    `pattern` is RE2 syntax over UTF-8; its first group, if any, is the secret, else the whole match is.
    `prefilter` is a cheap RE2 expression that every match contains. `judge` says who has the last word on a
    match (cortex.transforms.redact): "shape" takes it as it is; "mixed", "block", "given", "env", "bare" and
    "quoted" weigh the value. `note` says what it is for.
    """

    kind: str
    pattern: str
    prefilter: str
    judge: str
    note: str


# A word begins, also after an escaped line end: the n of \\n is a letter to \b.
_START = r"(?:\b|\\[nrt])"
# Between two runs of base64 in a key: line ends, real or escaped, quotes, line numbers, marks of a diff.
_GAP = r"""(?:\\[nrt]|[\s"'`+>|,#*]|\d+(?:→|\t))*"""
_PEM_NAME = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"
_QUOTE = r"""\\*["'`]"""
_QUOTED = r"""((?:[^"'`\\\r\n]|\\+[^"'`\\\r\n])+)"""
_BARE = r"""([^\s"'`\\,;&|<>(){}\[\]]+)"""
_TO = r"(?:\\*[\"'`])?\]?\s*(?::=|=>|={1,3}|:)\s*"

# Names of settings that hold a secret; detect-secrets' own list of key names is joined to it.
KEY_NAMES = (
    "passphrase",
    "passcode",
    "api[-_]?key",
    "access[-_]?key",
    "signing[-_]?key",
    "encryption[-_]?key",
    "auth[-_]?token",
    "token",
    "credentials?",
)

# A name that ends so tells something about a secret, not the secret: token_count, apiKeyHelper, secret_name.
HARMLESS_KEY_END = (
    r"(?i)(?:ids?|counts?|counter|types?|names?|ur[il]s?|path|files?|dir|env|var|variable|hash|length|size|"
    r"limit|max|min|budget|expir\w*|at|fields?|labels?|prefix|suffix|regex|patterns?|used|usage|helper|policy|hint|version|tokens|"
    r"izer|index|format|error|message|placeholder|description|title|status|scope|ref|page|input|required|rules?)$"
)

# Values that stand for a secret and are none. One such word anywhere is enough.
PLACEHOLDER_PART = (
    r"(?i)redacted|\.\.\.|…|\*\*\*|x{4,}|placeholder|change[-_ ]?me|example|dummy|your[-_ ]|[-_ ]here\b|"
    r"process\.env|environ|getenv|[$#%]\{|\{\{|\$\(|^<[^>]*>?$|^\{|^\$\(?$|^\$(?:[A-Z_]+|(?-i:[A-Z_][A-Z0-9_]*))(?:$|\W)|"
    r"^%\w*%?$|^https?://|^(?:\./|~/|/[a-z]+/)|^0+$|^123(?:45678?9?0?)?$"
)

# Values made only of such words are labels, types or stand-ins.
PLACEHOLDER_WORDS = (
    "a access admin an any api auth bar basic baz bearer bool boolean bytes changed client code confirm "
    "credential credentials current default demo disabled enabled encrypted env fake false field float "
    "foo for forgot forgotten from hidden id incorrect input int invalid is key label mandatory me "
    "mismatch missing mock my name new no none not null number object old one optional or pass passphrase "
    "passwd password placeholder private public pwd real required reset root sample secret secrets self "
    "some str string strong super test text the this to todo token tokens true two type undefined unknown "
    "unset user username valid validation value visible weak wrong yes"
)

RULES = (
    # Blocks
    Rule(
        "private-key",
        rf"-----BEGIN {_PEM_NAME}-----[A-Za-z0-9+/=\s\\\"'`:,.>|#*→\-]*?-----END {_PEM_NAME}-----",
        r"PRIVATE KEY",
        "block",
        "PEM and PGP block with both ends, also escaped, quoted, numbered or in a diff",
    ),
    Rule(
        "private-key",
        rf"-----BEGIN {_PEM_NAME}-----((?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]*)*"
        rf"(?:{_GAP}(?:M[CGI][A-Za-z0-9+/=]+|[A-Za-z0-9+/=]{{16,}}))(?:{_GAP}[A-Za-z0-9+/=]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]+=*)?)",
        r"PRIVATE KEY",
        "shape",
        "PEM block whose end was cut off",
    ),
    Rule(
        "private-key",
        rf"((?:[A-Za-z0-9+/=]{{16,}}{_GAP})+[A-Za-z0-9+/=]*{_GAP})-----END {_PEM_NAME}",
        r"PRIVATE KEY",
        "shape",
        "PEM block whose beginning was cut off",
    ),
    Rule(
        "private-key",
        rf"Private-Lines: *\d+((?:{_GAP}[A-Za-z0-9+/=]{{16,}})+(?:{_GAP}[A-Za-z0-9+/]+=*)?)",
        r"Private-Lines",
        "shape",
        "PuTTY key file",
    ),
    # Tokens known by their prefix
    Rule("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", r"sk-ant-", "mixed", "Anthropic API and OAuth keys"),
    Rule(
        "openai-key",
        rf"{_START}(sk-(?:proj|svcacct|admin|or-v1|None)-[A-Za-z0-9_-]{{20,}})",
        r"sk-(?:proj|svca|admi|or-v|None)",
        "mixed",
        "OpenAI and OpenRouter keys by project",
    ),
    Rule(
        "openai-key",
        rf"{_START}(sk-[A-Za-z0-9]{{32,}})",
        r"sk-[A-Za-z0-9]{8}",
        "mixed",
        "OpenAI, DeepSeek and similar keys",
    ),
    Rule(
        "github-token", r"github_pat_[A-Za-z0-9_]{22,}", r"github_pat_", "mixed", "GitHub fine-grained token"
    ),
    Rule(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9_]{30,}",
        r"gh[pousr]_[A-Za-z0-9]",
        "mixed",
        "GitHub, also longer ones",
    ),
    Rule(
        "gitlab-token",
        r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-[A-Za-z0-9_.-]{20,}",
        r"gl[a-z]{2,5}-[A-Za-z0-9]",
        "mixed",
        "GitLab, without the upper length of detect-secrets",
    ),
    Rule(
        "slack-token",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"xox[abeoprs]-",
        "mixed",
        "Slack, with letters in the parts",
    ),
    Rule("slack-token", r"xapp-\d-[A-Za-z0-9-]{10,}", r"xapp-", "mixed", "Slack app-level token"),
    Rule("huggingface-token", r"hf_[A-Za-z0-9]{30,}", r"hf_[A-Za-z0-9]{8}", "mixed", "Hugging Face"),
    Rule("npm-token", r"npm_[A-Za-z0-9]{36,}", r"npm_[A-Za-z0-9]{8}", "mixed", "npm access token"),
    Rule("google-key", r"AIza[A-Za-z0-9_-]{35}", r"AIza", "mixed", "Google API key"),
    Rule("google-token", r"ya29\.[A-Za-z0-9_-]{20,}", r"ya29\.", "mixed", "Google OAuth access token"),
    Rule("google-secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", r"GOCSPX-", "mixed", "Google OAuth client secret"),
    Rule(
        "stripe-key",
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"k_(?:live|test)_",
        "mixed",
        "Stripe, also test keys",
    ),
    Rule("stripe-key", r"whsec_[A-Za-z0-9+/=]{24,}", r"whsec_", "mixed", "Stripe and Svix webhook secret"),
    Rule(
        "sendgrid-key",
        rf"{_START}(SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}})",
        r"SG\.[A-Za-z0-9]",
        "mixed",
        "SendGrid",
    ),
    Rule("digitalocean-token", r"do[opr]_v1_[a-f0-9]{32,}", r"do[opr]_v1_", "mixed", "DigitalOcean"),
    Rule("voyage-key", rf"{_START}(pa-[A-Za-z0-9_-]{{40,}})", r"pa-[A-Za-z0-9_-]{8}", "mixed", "Voyage AI"),
    Rule("groq-key", rf"{_START}(gsk_[A-Za-z0-9]{{40,}})", r"gsk_", "mixed", "Groq"),
    Rule("xai-key", rf"{_START}(xai-[A-Za-z0-9]{{40,}})", r"xai-", "mixed", "xAI"),
    Rule("perplexity-key", rf"{_START}(pplx-[A-Za-z0-9]{{40,}})", r"pplx-", "mixed", "Perplexity"),
    Rule("replicate-token", rf"{_START}(r8_[A-Za-z0-9]{{30,}})", r"r8_", "mixed", "Replicate"),
    Rule(
        "vault-token", rf"{_START}(hv[sbr]\.[A-Za-z0-9_-]{{24,}})", r"hv[sbr]\.", "mixed", "HashiCorp Vault"
    ),
    Rule(
        "linear-key",
        rf"{_START}(lin_(?:api|oauth)_[A-Za-z0-9]{{32,}})",
        r"lin_(?:api|oauth)_",
        "mixed",
        "Linear",
    ),
    Rule(
        "notion-token",
        rf"{_START}((?:ntn_|secret_)[A-Za-z0-9]{{40,}})",
        r"ntn_|secret_[A-Za-z0-9]{8}",
        "mixed",
        "Notion",
    ),
    Rule("databricks-token", rf"{_START}(dapi[a-f0-9]{{32}})", r"dapi[a-f0-9]{8}", "mixed", "Databricks"),
    Rule(
        "shopify-token",
        rf"{_START}(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}})",
        r"shp[acps][ats]_",
        "mixed",
        "Shopify",
    ),
    Rule(
        "supabase-key", rf"{_START}(sb[ps]_[A-Za-z0-9_]{{32,}})", r"sb[ps]_[A-Za-z0-9]", "mixed", "Supabase"
    ),
    Rule(
        "doppler-token",
        rf"{_START}(dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{{30,}})",
        r"dp\.[a-z]{2,5}\.",
        "mixed",
        "Doppler",
    ),
    Rule(
        "sentry-token",
        rf"{_START}(sntrys_[A-Za-z0-9+/=_-]{{40,}})",
        r"sntrys_",
        "mixed",
        "Sentry organisation token",
    ),
    Rule("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", r"AGE-SECRET-KEY-", "shape", "age identity"),
    Rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/webhooks/\d+/([\w-]{30,})",
        r"api/webhooks/",
        "mixed",
        "Discord",
    ),
    Rule("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{40,}", r"pypi-AgE", "mixed", "PyPI, any index"),
    Rule(
        "jwt",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?",
        r"eyJ",
        "shape",
        "signature included",
    ),
    Rule(
        "jwt",
        r"eyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi|jdHkiOi)[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,4}",
        r"eyJ",
        "shape",
        "encrypted (five parts) or cut",
    ),
    # Cloud credentials known by their neighbour
    Rule(
        "aws-secret",
        rf"(?i)aws.{{0,3}}secret.{{0,3}}(?:access)?.{{0,3}}key{_TO}(?:{_QUOTE})?([A-Za-z0-9/+=]{{40}})",
        r"(?i)aws.?secret|secret.?access.?key",
        "mixed",
        "secret access key in a profile, an env line or JSON",
    ),
    Rule(
        "aws-secret",
        rf"(?i)(?:secret.?access.?key|session.?token){_TO}(?:{_QUOTE})?([A-Za-z0-9/+=]{{40,}})",
        r"(?i)secret.?access.?key|session.?token",
        "mixed",
        "as the API answers it: SecretAccessKey, SessionToken",
    ),
    Rule(
        "azure-key",
        r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretValue)=([A-Za-z0-9+/=%]{20,})",
        r"(?i)AccountKey=|SharedAccessKey=|SharedSecretValue=",
        "mixed",
        "connection strings of Azure storage, service bus, event hubs",
    ),
    Rule(
        "azure-key",
        r"[?&;]sig=([A-Za-z0-9%+/=_-]{30,})",
        r"[?&;]sig=",
        "mixed",
        "Azure shared access signature",
    ),
    Rule(
        "azure-secret",
        rf"{_START}([A-Za-z0-9_~.]{{3}}8Q~[A-Za-z0-9_~.-]{{31,34}})",
        r"8Q~",
        "mixed",
        "Azure client secret",
    ),
    # Passwords and tokens in lines, headers and addresses
    Rule(
        "url-password",
        r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'`<>\\]*:([^\s/"'`<>\\]+)@""",
        r"://[^\s:/]*:[^\s/]*@",
        "given",
        "user:password@ in any address, connection strings of databases included",
    ),
    Rule(
        "authorization",
        rf"(?i)authorization(?:{_QUOTE})?\s*[:=,]\s*(?:{_QUOTE})?(?:bearer|basic|token|apikey|negotiate)\s+([A-Za-z0-9._~+/=-]{{8,}})",
        r"(?i)authorization",
        "mixed",
        "HTTP header with its scheme",
    ),
    Rule(
        "authorization",
        rf"{_START}[Bb]earer\s+([A-Za-z0-9._~+/=-]{{20,}})",
        r"[Bb]earer\s",
        "mixed",
        "scheme without the header",
    ),
    Rule(
        "password",
        r"""(?:\b|\\[nrt])curl\b[^\n|;]*?\s(?:-u|--user)[ =]?\\*["']?[^\s:"'\\]+:([^\s"'\\]+)""",
        r"curl\s",
        "given",
        "user and password of a curl call",
    ),
    Rule(
        "password",
        r"""(?i)[;"'](?:password|pwd)\s*=\s*([^;"'`\s\\]{3,})""",
        r"(?i)[;\"'](?:password|pwd)\s*=",
        "given",
        "connection string of ODBC, ADO or JDBC",
    ),
    Rule(
        "password",
        r"""(?i)\bIDENTIFIED\s+BY\s+\\*["']([^"'\\\s]{3,})""",
        r"(?i)IDENTIFIED\s+BY",
        "given",
        "SQL user",
    ),
)

# %s takes the key names. Group 1 is the name, group 2 the value given to it.
KEYWORD_RULES = (
    Rule(
        "env",
        r"([A-Z0-9_]*(?:%s)[A-Z0-9_]*)=([^\s\"'`\\]+)",
        r"(?:%s)[A-Z0-9_]*=[^\s\"'`\\]",
        "env",
        "NAME=value, in a shell or an env file",
    ),
    Rule(
        "quoted",
        rf"(?i)([\w.-]*(?:%s)\w*){_TO}[a-z@]?{_QUOTE}{_QUOTED}",
        rf"(?i)(?:%s)\w*{_TO}[a-z@]?{_QUOTE}",
        "quoted",
        "name: 'value' in code, JSON, YAML",
    ),
    Rule(
        "bare",
        rf"(?i)([\w.-]*(?:%s)\w*){_TO}{_BARE}",
        rf"(?i)(?:%s)\w*{_TO}[^\s\"'`\\]",
        "bare",
        "name: value in YAML, INI, queries",
    ),
    Rule(
        "flag",
        rf"(?i)--([\w-]*(?:%s)\w*) +(?:{_QUOTE})?([^\s\"'`\\]+)",
        r"(?i)--[\w-]*(?:%s)\w* ",
        "bare",
        "--name value on a command line",
    ),
)

PERSONAL_RULES = (
    Rule(
        "email",
        r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
        r"@[A-Za-z0-9]",
        "shape",
        "e-mail address",
    ),
    Rule(
        "phone",
        r"\+\d{1,3}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,4}\b",
        r"\+\d",
        "shape",
        "international number",
    ),
    Rule(
        "phone",
        r"\(\d{3}\) ?\d{3}[ .-]\d{4}\b",
        r"\(\d{3}\)",
        "shape",
        "North American number, area code in brackets",
    ),
    Rule(
        "phone",
        rf"{_START}(\d{{3}}[.-]\d{{3}}[.-]\d{{4}}\b)",
        r"\d{3}[.-]\d{4}",
        "shape",
        "North American number",
    ),
)

# Detectors left out: rules above take in the whole block or signature where these stop at the head (private
# keys, JWT), keep the name beside the value (Azure) or weigh the value (URLs); an IP address is no secret.
REPLACED_DETECTORS = (
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "IPPublicDetector",
    "JwtTokenDetector",
    "PrivateKeyDetector",
)

# Detectors that match names in code too: to one of them "PASS: TestTheWholeNameOfAVeryLongTestCase_OfSome" is
# an IBM key. What they find has to look like a token: digits and letters.
LOOSE_DETECTORS = ("ArtifactoryDetector", "CloudantDetector", "IbmCloudIamDetector", "SoftlayerDetector")

# Cheap expressions for detectors of detect-secrets by class; a detector without one is its own prefilter.
DETECTOR_PREFILTERS = {
    "ArtifactoryDetector": r"AKC[a-zA-Z0-9]{10}|AP[0-9A-F][a-zA-Z0-9]{8}",
    "AWSKeyDetector": r"A3T[A-Z0-9]|A[BKS]IA|ACCA|(?i:aws)",
    "CloudantDetector": r"(?i:clou?(?:dant)?[_-]?(?:api)?(?:key|pwd|pw|pass|token))|cloudant\.com",
    "DiscordBotTokenDetector": r"\.[a-zA-Z0-9_-]{6}\.[a-zA-Z0-9_-]{20}",
    "GitHubTokenDetector": r"gh[pousr]_[A-Za-z0-9]",
    "GitLabTokenDetector": r"gl[a-z]{2,5}-|GR1348941",
    "IbmCloudIamDetector": r"(?i:(?:key|pwd|pass|token)[\"']?\]?\s*[:= ]>?=?[\s:\"']*[a-z0-9_-]{30})",
    "IbmCosHmacDetector": r"(?i:secret[-_]?(?:access)?[-_]?key)",
    "MailchimpDetector": r"[0-9a-z]{8}-us[0-9]",
    "NpmDetector": r"_authToken=",
    "OpenAIDetector": r"T3BlbkFJ",
    "PypiTokenDetector": r"pypi-AgE",
    "SendGridDetector": r"SG\.[A-Za-z0-9]",
    "SlackDetector": r"(?i:xox[abopsr]-|hooks\.slack\.com)",
    "SoftlayerDetector": r"(?i:softlayer|sl[_-]?(?:api)?[_-]?(?:key|pwd|pass|token))",
    "SquareOAuthDetector": r"sq0csp-",
    "StripeDetector": r"k_live_",
    "TelegramBotTokenDetector": r"[0-9]{8}:[0-9A-Za-z_-]{16}",
    "TwilioKeyDetector": r"(?:AC|SK)[a-z0-9]{16}",
}
