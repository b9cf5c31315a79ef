"""Shapes of secrets beyond those of detect-secrets, and the words that tell them from stand-ins, as data."""

from typing import NamedTuple


class Rule(NamedTuple):
    """
    One shape of a secret.

    `pattern` is RE2 syntax over UTF-8; its first group, if any, is the secret, else the whole match is.
    `prefilter` is a cheap RE2 expression that every match contains. `judge` says who has the last word on a
    match (cortex.transforms.redaction.secret_judges): "shape" takes it as it is, others weigh the value.
    `note` says what it is for.
    """

    kind: str
    pattern: str
    prefilter: str
    judge: str
    note: str


# A word begins, also after an escaped line end: the n of \\n is a letter to \b.
BOUND = r"(?:\b|\\[nrt])"
QUOTE = r"""\\*["'`]"""
QUOTE_OR_NONE = rf"(?:{QUOTE})?"
_QUOTED = r"""((?:[^"'`\\\r\n]|\\+[^"'`\\\r\n])+)"""
_BARE = r"""([^\s"'`\\,;&|<>(){}\[\]]+)"""
_TO = r"(?:\\*[\"'`])?\]?\s*(?::=|=>|={1,3}|:)\s*"

GITLAB = r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-"

# Names of settings that hold a secret; detect-secrets' own list of key names is joined to it.
KEY_NAMES = (
    "passphrase",
    "passcode",
    "(?:db|database|smtp|mail|redis|mysql|pg|ssh|sudo|become|admin|root|user|key|store)[-_.]?pass",
    "(?:api|access|account|app|auth|encryption|license|master|preshared|private|secret|service|shared|"
    "signing)[-_.]?key(?:[-_.]?base)?",
    "auth[-_.]?token",
    "token",
    "credentials?",
    "pepper",
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
    # Cloud credentials known by their neighbour
    Rule(
        "aws-secret",
        rf"(?i)aws.{{0,3}}secret.{{0,3}}(?:access)?.{{0,3}}key{_TO}(?:{QUOTE})?([A-Za-z0-9/+=]{{40}})",
        r"(?i)aws.?secret|secret.?access.?key",
        "mixed",
        "secret access key in a profile, an env line or JSON",
    ),
    Rule(
        "aws-secret",
        rf"(?i)(?:secret.?access.?key|session.?token){_TO}(?:{QUOTE})?([A-Za-z0-9/+=]{{40,}})",
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
        rf"{BOUND}([A-Za-z0-9_~.]{{3}}8Q~[A-Za-z0-9_~.-]{{31,34}})",
        r"8Q~",
        "mixed",
        "Azure client secret",
    ),
    # Passwords and tokens in lines, headers and addresses
    Rule(
        "url-password",
        r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'`<>\\]*:([^\s/"'`<>\\]+)@""",
        r"://[^\s/]*@",
        "given",
        "user:password@ in any address, connection strings of databases included",
    ),
    Rule(
        "authorization",
        rf"(?i)authorization(?:{QUOTE})?\s*[:=,]\s*(?:{QUOTE})?(?:bearer|basic|token|apikey|negotiate)\s+([A-Za-z0-9._~+/=-]{{8,}})",
        r"(?i)authorization",
        "mixed",
        "HTTP header with its scheme",
    ),
    Rule(
        "authorization",
        rf"{BOUND}[Bb]earer\s+([A-Za-z0-9._~+/=-]{{20,}})",
        r"[Bb]earer\s",
        "mixed",
        "scheme without the header",
    ),
    Rule(
        "password",
        r"""(?:\b|\\[nrt])curl\b(?:[^\n|;]|\\\r?\n)*?\s(?:-u|--user)[ =]?\\*["']?[^\s:"'\\]+:([^\s"'\\]+)""",
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
        rf"(?i)([\w.-]*(?:%s)\w*){_TO}[a-z@]?{QUOTE}{_QUOTED}",
        rf"(?i)(?:%s)\w*{_TO}[a-z@]?{QUOTE}",
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
        rf"(?i)--([\w-]*(?:%s)\w*) +(?:{QUOTE})?([^\s\"'`\\]+)",
        r"(?i)--[\w-]*(?:%s)\w* ",
        "bare",
        "--name value on a command line",
    ),
)

# A name and its value as two fields: a Kubernetes variable, an XML attribute, a cell beside another.
PAIR_RULES = (
    Rule(
        "pair",
        rf"""(?i)\b(?:name|key|variable){QUOTE_OR_NONE}\s*[:=]?\s*{QUOTE_OR_NONE}([\w.-]*(?:%s)\w*){QUOTE_OR_NONE}[\s,{{]*"""
        rf"""(?:-\s*)?{QUOTE_OR_NONE}(?:value|default){QUOTE_OR_NONE}\s*[:=]\s*{QUOTE_OR_NONE}([^\s"'`\\,;<>{{}}]+)""",
        r"(?i)(?:name|key|variable)\W+[\w.-]*(?:%s)",
        "env",
        "name: X, value: secret",
    ),
    Rule(
        "element",
        r"(?i)<([\w.-]*(?:%s)\w*)(?:\s[^<>]*)?>([^<>\s]+)</",
        r"(?i)<[\w.-]*(?:%s)\w*(?:\s[^<>]*)?>[^<>\s]",
        "quoted",
        "an XML element named for its secret",
    ),
    Rule(
        "define",
        r"""(?i)define\(\s*["']([\w.-]*(?:%s)\w*)["']\s*,\s*["']([^"'\r\n]+)["']""",
        r"(?i)define\(",
        "quoted",
        "PHP constant",
    ),
    Rule(
        "cell",
        r"(?i)\|\s*`?([\w.-]*(?:%s)\w*)`?\s*\|\s*`?([^\s|`]+)`?\s*\|",
        r"(?i)(?:%s)\w*`?\s*\|",
        "bare",
        "cells of a table",
    ),
    Rule(
        "build",
        r"(?m)(?:^|\\n)\s*(?:ENV|ARG)\s+([A-Z0-9_]*(?:%s)[A-Z0-9_]*)\s+([^\s\"'`\\]+)",
        r"(?:ENV|ARG)\s+[A-Z0-9_]*(?:%s)",
        "env",
        "a Dockerfile's ENV with a blank",
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
        rf"{BOUND}(\d{{3}}[.-]\d{{3}}[.-]\d{{4}}\b)",
        r"\d{3}[.-]\d{4}",
        "shape",
        "North American number",
    ),
)

# Detectors left out: rules above take in the whole block or signature where these stop at the head (private
# keys, JWT), keep the name beside the value (Azure) or weigh the value (URLs); an IP address is not a secret.
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
    "ArtifactoryDetector": r"AKC[a-zA-Z0-9]|AP[0-9A-F][a-zA-Z0-9]",
    "AWSKeyDetector": r"A3T[A-Z0-9]|A[BKS]IA|ACCA|(?i:aws)",
    "CloudantDetector": r"(?i:clou?(?:dant)?[_-]?(?:api)?(?:key|pwd|pw|pass|token))|cloudant\.com",
    "DiscordBotTokenDetector": r"\.[a-zA-Z0-9_-]{6}\.[a-zA-Z0-9_-]",
    "GitHubTokenDetector": r"gh[pousr]_[A-Za-z0-9]",
    "GitLabTokenDetector": rf"{GITLAB}|GR1348941",
    "IbmCloudIamDetector": r"(?i:(?:key|pwd|pass|token)[\"']?\]?\s*[:= ]>?=?[\s:\"']*[a-z0-9_-]{30})",
    "IbmCosHmacDetector": r"(?i:secret[-_]?(?:access)?[-_]?key)",
    "MailchimpDetector": r"[0-9a-z]-us[0-9]",
    "NpmDetector": r"_authToken=",
    "OpenAIDetector": r"T3BlbkFJ",
    "PypiTokenDetector": r"pypi-AgE",
    "SendGridDetector": r"SG\.[A-Za-z0-9]",
    "SlackDetector": r"(?i:xox[abopsr]-|hooks\.slack\.com)",
    "SoftlayerDetector": r"(?i:softlayer|sl[_-]?(?:api)?[_-]?(?:key|pwd|pass|token))",
    "SquareOAuthDetector": r"sq0csp-",
    "StripeDetector": r"k_live_",
    "TelegramBotTokenDetector": r"[0-9][0-9][0-9][0-9]:[A-Za-z_-]",
    "TwilioKeyDetector": r"(?:AC|SK)[a-z0-9][a-z0-9]",
}
