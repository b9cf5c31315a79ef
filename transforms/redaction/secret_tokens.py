"""Secrets that are known wherever they stand: blocks of keys, and tokens by how they begin."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator

from cortex.transforms.redaction.secret_rules import BOUND, GITLAB, Rule

# -- Tokens that begin with a name of their own, by that beginning: data for two rules of redaction.

# From the catalogue of MongoDB Kingfisher 1.5 (488 rules, Apache-2.0, kept up by its makers) and vendors'
# pages, without what is public by design, as publishable keys and ids of clients are (decisions/0044).
PREFIXES = (
    # Code, packages, builds
    "AIK_CI_ AIK_SECRET_ ATATT3xFf ATCTT3xFf BBDC- CCIPAT_ CCIPRJ_ CLOJARS_ HRKU- PMAK- PMAT- SWMKEY-1- "
    "SWMTKN-1- bkaa_ bkaj_ bkar_ bkct_ bkpat_ bkps_ bkpt_ bkua_ csa_ dckr_oat_ dckr_pat_ depot_org_ "
    "depot_user_ glsoat- ico- mergify_application_key_ packagist_acs_ packagist_ort_ packagist_out_ pul- "
    "rdme_ rootly_ rubygems_ sgp_ sktsec_ snyk_sat. snyk_uat. sntryu_ sqa_ sqp_ squ_ "
    # Clouds, hosts, databases
    "AVNS_ AstraCS: CCDB1_ FlyV1 STS. apify_api_ cfat_ cfk_ cfut_ dbtc_ dbtu_ ddo_ ddp_ dt0c01. dt0s01. "
    "essu_ eyJrIjoi fm2_ napi_ nbp_ nfp_ mdb_sa_sk_ os_v2_ pnb_ pnu_ polar_at_ polar_oat_ polar_pat_ "
    "pscale_oauth_ pscale_pw_ pscale_tkn_ rnd_ rpa_ sb_secret_ tk-us- ucat_ unkey_ v1.0- vca_ vci_ vck_ "
    "vcp_ vcr_ vercel_blob_rw_ vtwn_ xau_ zpka_ "
    # Networks, watching, flags
    "NRAK- NRII- NRIQ- dnkey- dvc_server_ glc_ glsa_ hbp_ hcaik_ hcalk_ hcamk_ phs_ phx_ pylf_v1_ "
    "tskey-api- tskey-auth- tskey-client- tskey-scim- tskey-webhook- "
    # Models and search
    "api_org_ bb_live_ cog_ csk- fw_ jina_ llx- lsv2_pt_ lsv2_sk_ nvapi- pcsk_ sk-api- sk-helicone- "
    "sk-lf- sk_car_ tgp_v1_ tvly- wandb_v1_ "
    # Money, post, people, things
    "$aact_ CFPAT- FLWSECK- FLWSECK_TEST- SSWS api_live. api_live_ca. api_live_us. bxt_ duffel_live_ "
    "duffel_test_ figd_ figdr_ fio-u- lip_ mercury_production_ mlsn. nyk_ ops_ey p8e- pdl_live_apikey_ "
    "pdl_sdbx_apikey_ persona_production_ pina_ prf_ ramp_sec_ samsara_api_ secret-live- secret-test- "
    "shippo_live_ shippo_test_ sm_aat_ sm_pat_ sm_sat_ sq0atp- tfp_ tss_ waka_ xkeysib- xnd_production_ "
    "xoxc- xoxd- xoxe- xoxe.xox "
)

# Too short to tell by themselves: base64 has them by chance. They begin a word, and no word follows.
SHORT_PREFIXES = "ABSK AKID AQVN BSA EAA EZAK EZTK LTAI cmVmdGtu cio dG9rOj oy2 sl. y0_ y1_ y2_ y3_"


# Between two runs of base64 in a key: line ends, real or escaped, quotes, line numbers, marks of a diff.
_GAP = r"""(?:\\[nrt]|[\s"'`+>|,#*]|\d+(?:→|\t))*"""
_PEM_NAME = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"
_PREFIXES = "|".join(map(re.escape, PREFIXES.split()))
_SHORT_PREFIXES = "|".join(map(re.escape, SHORT_PREFIXES.split()))


def _encoded(beginnings: Iterable[str]) -> Iterator[str]:
    """Yield what base64 makes of each beginning, wherever in three bytes it begins, and of nothing else."""
    for beginning in beginnings:
        for before in range(3):
            coded = b64encode(b"\0" * before + beginning.encode()).decode().rstrip("=")
            first = (0, 2, 3)[before]
            yield re.escape(coded[first : (before + len(beginning)) * 4 // 3])


# Six signs of base64 and more: fewer stand in an image by chance.
_ENCODED = "|".join(
    _encoded(
        (
            *(f"{before}gh{kind}_" for before in (": ", "=", '"') for kind in "pos"),
            *("github_pat_", "glpat-", "sk-ant-", "sk-proj-", "xoxb-", "PRIVATE KEY"),
        )
    )
)

# The next line of a wrapped text.
_WRAP = r"(?:\r?\n|\\n)[ \t>+]*"

_BEFORE_HEX = "key-|fc-|live_|sk_|e2b_|crsr_|signkey-(?:prod|test)-|ATTA"

TOKEN_RULES = (
    # Blocks
    Rule("private-key",
        rf"-----BEGIN {_PEM_NAME}-----[A-Za-z0-9+/=\s\\\"'`:,.>|#*→\-]*?-----END {_PEM_NAME}-----",
        r"PRIVATE KEY", "block",
        "PEM and PGP block with both ends, also escaped, quoted, numbered or in a diff"),
    Rule("private-key",
        rf"-----BEGIN {_PEM_NAME}-----((?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]*)*"
        rf"(?:{_GAP}(?:M[CGI][A-Za-z0-9+/=]+|[A-Za-z0-9+/=]{{16,}}))(?:{_GAP}[A-Za-z0-9+/=]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]+=*)?)",
        r"PRIVATE KEY", "shape", "PEM block whose end was cut off"),
    Rule("private-key", rf"((?:[A-Za-z0-9+/=]{{16,}}{_GAP})+[A-Za-z0-9+/=]*{_GAP})-----END {_PEM_NAME}",
        r"PRIVATE KEY", "shape", "PEM block whose beginning was cut off"),
    Rule("private-key", rf"Private-Lines: *\d+((?:{_GAP}[A-Za-z0-9+/=]{{16,}})+(?:{_GAP}[A-Za-z0-9+/]+=*)?)",
        r"Private-Lines", "shape", "PuTTY key file"),
    # Tokens known by their prefix
    Rule("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", r"sk-ant-", "mixed", "Anthropic API and OAuth keys"),
    Rule("openai-key", rf"{BOUND}(sk-(?:proj|svcacct|admin|or-v1|None)-[A-Za-z0-9_-]{{20,}})",
        r"sk-(?:proj|svca|admi|or-v|None)", "mixed", "OpenAI and OpenRouter keys by project"),
    Rule("openai-key", rf"{BOUND}(sk-[A-Za-z0-9]{{32,}})", r"sk-[A-Za-z0-9]", "mixed",
        "OpenAI, DeepSeek and similar keys"),
    Rule("github-token", r"github_pat_[A-Za-z0-9_]{22,}", r"github_pat_", "mixed",
        "GitHub fine-grained token"),
    Rule("github-token", r"gh[pousr]_[A-Za-z0-9_]{30,}", r"gh[pousr]_[A-Za-z0-9]", "mixed",
        "GitHub, also longer ones"),
    Rule("gitlab-token", r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-[A-Za-z0-9_.-]{20,}", GITLAB,
        "mixed", "GitLab, without the upper length of detect-secrets"),
    Rule("slack-token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}", r"xox[abeoprs]-", "mixed",
        "Slack, with letters in the parts"),
    Rule("slack-token", r"xapp-\d-[A-Za-z0-9-]{10,}", r"xapp-", "mixed", "Slack app-level token"),
    Rule("huggingface-token", r"hf_[A-Za-z0-9]{30,}", r"hf_[A-Za-z0-9]", "mixed", "Hugging Face"),
    Rule("npm-token", r"npm_[A-Za-z0-9]{36,}", r"npm_[A-Za-z0-9]", "mixed", "npm access token"),
    Rule("google-key", r"AIza[A-Za-z0-9_-]{35}", r"AIza", "mixed", "Google API key"),
    Rule("google-token", r"ya29\.[A-Za-z0-9_-]{20,}", r"ya29\.", "mixed", "Google OAuth access token"),
    Rule("google-secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", r"GOCSPX-", "mixed", "Google OAuth client secret"),
    Rule("stripe-key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", r"k_(?:live|test)_", "mixed",
        "Stripe, also test keys"),
    Rule("stripe-key", r"whsec_[A-Za-z0-9+/=]{24,}", r"whsec_", "mixed", "Stripe and Svix webhook secret"),
    Rule("sendgrid-key", rf"{BOUND}(SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}})", r"SG\.[A-Za-z0-9]",
        "mixed", "SendGrid"),
    Rule("digitalocean-token", r"do[opr]_v1_[a-f0-9]{32,}", r"do[opr]_v1_", "mixed", "DigitalOcean"),
    Rule("voyage-key", rf"{BOUND}(pa-[A-Za-z0-9_-]{{40,}})", r"pa-[A-Za-z0-9]", "mixed", "Voyage AI"),
    Rule("groq-key", rf"{BOUND}(gsk_[A-Za-z0-9]{{40,}})", r"gsk_", "mixed", "Groq"),
    Rule("xai-key", rf"{BOUND}(xai-[A-Za-z0-9]{{40,}})", r"xai-", "mixed", "xAI"),
    Rule("perplexity-key", rf"{BOUND}(pplx-[A-Za-z0-9]{{40,}})", r"pplx-", "mixed", "Perplexity"),
    Rule("replicate-token", rf"{BOUND}(r8_[A-Za-z0-9]{{30,}})", r"r8_", "mixed", "Replicate"),
    Rule("vault-token", rf"{BOUND}(hv[sbr]\.[A-Za-z0-9_-]{{24,}})", r"hv[sbr]\.", "mixed", "HashiCorp Vault"),
    Rule("linear-key", rf"{BOUND}(lin_(?:api|oauth|wh)_[A-Za-z0-9]{{32,}})", r"lin_(?:api|oauth|wh)_",
        "mixed", "Linear"),
    Rule("notion-token", rf"{BOUND}((?:ntn_|secret_)[A-Za-z0-9]{{40,}})", r"ntn_|secret_[A-Za-z0-9]", "mixed",
        "Notion"),
    Rule("databricks-token", rf"{BOUND}(dapi[a-f0-9]{{32}})", r"dapi[a-f0-9][a-f0-9]", "mixed", "Databricks"),
    Rule("shopify-token", rf"{BOUND}(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}})", r"shp[acps][ats]_", "mixed",
        "Shopify"),
    Rule("supabase-key", rf"{BOUND}(sb[ps]_[A-Za-z0-9_]{{32,}})", r"sb[ps]_[A-Za-z0-9]", "mixed", "Supabase"),
    Rule("doppler-token", rf"{BOUND}(dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{{30,}})",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.", "mixed", "Doppler"),
    Rule("sentry-token", rf"{BOUND}(sntrys_[A-Za-z0-9+/=_-]{{40,}})", r"sntrys_", "mixed",
        "Sentry organisation token"),
    Rule("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", r"AGE-SECRET-KEY-", "shape", "age identity"),
    Rule("nostr-key", r"\bnsec1[a-z0-9]{58}\b", r"nsec1", "shape", "Nostr"),
    Rule("service-token",
        rf"{BOUND}(AQ\.[A-Za-z0-9_-]{{30,}}|npg_[A-Za-z0-9]{{12,}}|a[ks]-[A-Za-z0-9]{{22}}\b|"
        r"m0-[A-Za-z0-9]{40}|tr_(?:dev|prod)_[A-Za-z0-9]{20,}|pk_\d{5,}_[A-Z0-9]{32})",
        r"AQ\.[A-Za-z0-9]|npg_[A-Za-z0-9]|\ba[ks]-[A-Za-z0-9]|m0-[A-Za-z0-9]|tr_(?:dev|prod)_|pk_\d+_",
        "thrown", "Gemini, Neon, Modal, Mem0, Trigger.dev, ClickUp: short beginnings, by their length"),
    Rule("wandb-key", r"(?i)wandb\b[^\n]{0,80}?(?:login|key|enter)[^\n]{0,30}?\b([0-9a-f]{40})\b",
        r"(?i)wandb\b", "shape", "Weights & Biases: 40 hexadecimal digits where its program asks for them"),
    Rule("discord-webhook", r"discord(?:app)?\.com/api/webhooks/\d+/([\w-]{30,})", r"api/webhooks/", "mixed",
        "Discord"),
    Rule("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{40,}", r"pypi-AgE", "mixed", "PyPI, any index"),
    Rule("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?", r"eyJ", "shape",
        "signature included"),
    Rule("jwt", r"eyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi|jdHkiOi)[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,4}",
        r"eyJ", "shape", "encrypted (five parts) or cut"),
    # Tokens with a short beginning, by their whole shape
    Rule("bitbucket-token", rf"{BOUND}(ATBB[A-Za-z0-9]{{32,}})", r"ATBB", "token", "Bitbucket app password"),
    Rule("onepassword-key", rf"{BOUND}(A3-(?:[A-Z0-9]{{5,11}}-){{4,5}}[A-Z0-9]{{5}})", r"A3-[A-Z0-9]",
        "shape", "1Password"),
    Rule("service-token", rf"{BOUND}((?:{_BEFORE_HEX})[0-9a-f]{{32,}})",
        rf"(?:{_BEFORE_HEX})[0-9a-f][0-9a-f][0-9a-f][0-9a-f]", "mixed",
        "hexadecimal digits: Mailgun, Firecrawl, GoCardless, ElevenLabs, E2B, Cursor, Inngest, Trello"),
    Rule("airtable-token", rf"{BOUND}(pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}})", r"pat[A-Za-z0-9]+\.[a-f0-9]",
        "shape", "Airtable"),
    Rule("asana-token", rf"{BOUND}([12]/\d{{10,}}(?:/\d+)?:[a-f0-9]{{32}})", r"[12]/\d\d\d\d\d", "shape",
        "Asana"),
    Rule("service-token",
        rf"{BOUND}((?:pat-(?:na|eu|ap)\d-|sdk-|access-(?:sandbox|development|production)-|amzn\.mws\.|sk-lf-|xa[ap]t-|api-)"
        r"[0-9a-f]{8,}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
        r"pat-(?:na|eu|ap)\d-|sdk-[0-9a-f]|access-(?:sandbox|development|production)-|amzn\.mws\.|sk-lf-|xa[ap]t-|api-[0-9a-f]",
        "shape", "a UUID behind HubSpot's, LaunchDarkly's, Plaid's, Amazon's, Langfuse's, Axiom's beginning"),
    Rule("braintree-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        r"access_token\$", "shape", "Braintree"),
    Rule("azure-token", rf"{BOUND}([A-Za-z0-9]{{52,80}}AZDO[A-Za-z0-9]{{4}})", r"AZDO", "mixed",
        "Azure DevOps"),
    Rule("mapbox-token", rf"{BOUND}(sk\.eyJ[A-Za-z0-9_-]{{20,}}\.[A-Za-z0-9_-]{{16,}})", r"sk\.eyJ", "shape",
        "Mapbox, secret"),
    Rule("twitter-token", rf"{BOUND}(A{{20,}}[A-Za-z0-9%]{{60,}})", r"AAAAAAAAAAAAAAAAAAAA", "mixed",
        "Twitter bearer"),
    Rule("resend-key", rf"{BOUND}(re_[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,}})", r"re_[A-Za-z0-9]+_[A-Za-z0-9]",
        "token", "Resend"),
    Rule("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", r"\.atlasv1\.", "shape",
        "Terraform Cloud"),
    Rule("vault-token", rf"{BOUND}(s\.[A-Za-z0-9]{{24}})(?:[^A-Za-z0-9_.(]|$)",
        r"(?:^|\W)s\.[A-Za-z0-9][A-Za-z0-9]", "random", "Vault before 1.10"),
    Rule("service-token", rf"{BOUND}((?:cf|vercel)_[A-Za-z0-9]{{24,}}|cflt[A-Za-z0-9+/]{{50,}})",
        r"(?:cf|vercel)_[A-Za-z0-9]|cflt[A-Za-z0-9]", "token", "Cloudflare, Vercel, Confluent"),
    Rule("service-token", rf"{BOUND}(fo1_[A-Za-z0-9_-]{{40,}}|sess-[A-Za-z0-9]{{40,}}|key_[0-9a-f]{{40,}})",
        r"fo1_|sess-[A-Za-z0-9]|key_[0-9a-f][0-9a-f][0-9a-f][0-9a-f]", "mixed",
        "Fly, OpenAI in a browser, Cursor"),
    Rule("service-token",
        r"\b([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}|st\.[0-9a-f-]{36}\.[0-9a-f]{32}\.[0-9a-f]{32}|"
        r"0\.[0-9a-f-]{36}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{20,}=*)",
        r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]|\b(?:st|0)\.[0-9a-f]", "shape",
        "Mailgun, Infisical, Bitwarden: runs of hexadecimal digits, joined"),
    Rule("google-token", r"(?:^|\W)(1//0[A-Za-z0-9_-]{40,})", r"1//0", "mixed", "Google refresh token"),
    Rule("matrix-token", rf"{BOUND}(syt_[A-Za-z0-9=+/]+_\w{{16,}}_\w{{4,}})", r"syt_", "shape", "Matrix"),
    Rule("webhook", r"hooks\.slack\.com/(?:triggers|workflows)/[\w/]+/(\w{16,})", r"hooks\.slack", "token",
        "Slack"),
    Rule("webhook", r"loggly\.com/(?:inputs|bulk)/([0-9a-f-]{36})", r"loggly\.com", "shape", "Loggly"),
    Rule("razorpay-key", r"rzp_(?:live|test)_\w{14}:(\w{16,})", r"rzp_", "token", "Razorpay"),
    Rule("github-token", r"(gh[pousr]_[A-Za-z0-9]{4,35}\s*\\?\n\s*[A-Za-z0-9]{8,36})\b",
        r"gh[pousr]_[A-Za-z0-9]+\s*\\?\n", "random", "GitHub, wrapped over two lines"),
    Rule("encoded-token", rf"([A-Za-z0-9+/]{{0,400}}(?:{_ENCODED})[A-Za-z0-9+/=]{{12,}}"
        rf"(?:{_WRAP}[A-Za-z0-9+/]{{60,76}})*(?:{_WRAP}(?:[A-Za-z0-9+/]{{2,75}}={{1,2}}|[A-Za-z0-9+/]{{8,75}})(?:\s|\\|$))?)",
        rf"(?:{_ENCODED})", "mixed", "a token that is known by its beginning, in base64, also in lines"),
    Rule("okta-token", r"SSWS\s+(00[A-Za-z0-9_-]{38,})", r"SSWS\s", "mixed", "Okta"),
    Rule("webhook",
        r"webhook\.office\.com/webhookb2/[0-9a-f@%-]+/IncomingWebhook/([0-9a-f]{32}/[0-9a-f-]{36})",
        r"webhook\.office\.com", "shape", "Teams"),
    Rule("webhook", r"hooks\.zapier\.com/hooks/catch/(\d+/[A-Za-z0-9]{6,})", r"hooks\.zapier\.com", "shape",
        "Zapier"),
    Rule("service-token",
        rf"{BOUND}((?:{_PREFIXES})[ A-Za-z0-9_.+/=-][A-Za-z0-9_.+/=-]{{14,}}[A-Za-z0-9_=-])",
        rf"(?:{_PREFIXES})[ A-Za-z0-9_.+/=-]", "thrown", "tokens that begin with a name of their own"),
    Rule("service-token", rf"(?:^|[^A-Za-z0-9+/_.-]|\\[nrt])((?:{_SHORT_PREFIXES})[A-Za-z0-9_+/-]{{20,}})",
        rf"(?:{_SHORT_PREFIXES})[A-Za-z0-9_+/-]", "random", "the same with a short beginning"),
)  # fmt: skip
