"""Places that show a secret which looks like nothing: flags of commands, files, headers, words before it."""

from cortex.transforms.redaction.secret_rules import QUOTE, Rule

# To the end of one command, over continued lines; a pipe or a semicolon begins another.
_ARGUMENTS = r"(?:[^\n|;&]|\\\r?\n)*?\s"
# In quotes all up to the quote, else one word of the shell.
_WORD = r"""\\*(?:["']([^"'\n\\]+)|([^\s"'\\|;&]+))"""

# The word for a password in the languages of the fifteen largest keyboards, with and without its accents.
_PASSWORD = (
    r"pass(?:wort|ord|phrase|code|word|wd)|kennwort|mot de passe|contrase(?:ñ|n)a|senha|palavra[- ]passe|"
    r"parola(?: d['’]ordine)?|wachtwoord|has(?:ł|l)o|heslo|l(?:ö|o)senord|adgangskode|kodeord|salasana|"
    r"(?:ş|s)ifre|jelsz(?:ó|o)|парол[ьяю]|密码|密碼|口令|パスワード|비밀번호|암호|"
    r"كلمة (?:المرور|السر)|סיסמ[הא]|m(?:ậ|a)t kh(?:ẩ|a)u|kata sandi|รหัสผ่าน|पासवर्ड|κωδικός"
)


def _flag(program: str, flag: str, note: str, judge: str = "given") -> Rule:
    """Return the rule for a program whose flag is followed by a password."""
    first = program.replace("\\b", "")
    return Rule(
        "password",
        rf"(?:\b|\\[nrt])(?:{program}){_ARGUMENTS}(?:{flag}){_WORD}",
        rf"(?:{first})\s",
        judge,
        note,
    )


COMMANDS = (
    _flag(r"mysql\w*|mariadb[\w-]*", r"-p", "the password stands at the flag itself"),
    Rule(
        "password",
        rf"(?:\b|\\[nrt])sshpass(?:\s+-(?:[fdP]\s*\S+|[evhV]+))*\s+-p\s*{_WORD}",
        r"sshpass\s",
        "given",
        "ssh with a password; the -p of ssh itself is a port",
    ),
    _flag(r"redis-cli|valkey-cli", r"-a\s+|--pass\s+", "Redis"),
    _flag(r"mongo(?:sh|dump|restore|export|import)?", r"-p\s+", "MongoDB"),
    _flag(
        r"(?:docker|podman|buildah|skopeo|nerdctl|helm registry|oc|az|cf|oras) login", r"-p[ =]+", "log-ins"
    ),
    _flag(r"ldap(?:search|add|modify|delete|whoami|passwd)", r"-w\s+", "LDAP"),
    _flag(r"smbclient|rpcclient|mount\.cifs", r"-U\s*\\*[\"']?[\w.\\/-]+%", "user%password of Samba"),
    _flag(r"7za?|7zz|7zr|rar|unrar", r"-h?p", "archives, the password at the flag itself", "word"),
    _flag(r"zip|unzip", r"-P\s+", "archives", "word"),
    _flag(r"https?", r"(?:-a|--auth)[ =]+\\*[\"']?[^\s:\"']+:", "HTTPie"),
    _flag(r"keytool|jarsigner|apksigner", r"-(?:src|dest)?(?:store|key)pass[ =]+", "Java key stores"),
    _flag(r"openssl", r"-pass(?:in|out)?\s+\\*[\"']?pass:", "OpenSSL"),
    _flag(r"htpasswd", r"-\w*b\w*\s+(?:-\w+\s+)*(?:[^\s-]\S*\s+)?[^\s-]\S*\s+", "web server"),
    _flag(r"net use", r"/user:\S+\s+", "Windows shares"),
    Rule(
        "password",
        r"""(?:\b|\\[nrt])echo\s+(?:-n\s+)?\\*["']?([^\s"'|\\]+)\\*["']?\s*\|[^\n|]*(?:--password-stdin|--with-token|sudo\s+-S)""",
        r"--password-stdin|--with-token|sudo\s+-S",
        "given",
        "a password handed over by a pipe",
    ),
    Rule(
        "password",
        r"""(?:\b|\\[nrt])echo\s+\\*["']?[\w.-]+:([^\s"'|\\]+)\\*["']?\s*\|\s*(?:sudo\s+)?chpasswd""",
        r"chpasswd",
        "given",
        "user:password handed to chpasswd",
    ),
    Rule(
        "password",
        r"""(?i)ConvertTo-SecureString\s+(?:-String\s+)?\\*["']([^"'\\]{3,})""",
        r"(?i)ConvertTo-SecureString",
        "given",
        "PowerShell",
    ),
    Rule(
        "secret",
        r"""--from-literal[= ]\\*["']?[\w.-]+=([^\s"'\\]+)""",
        r"--from-literal",
        "given",
        "kubectl create secret",
    ),
    Rule(
        "password",
        r"\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s+(?:-\w+\s+)*[\w$]+/([^@\s]+)@",
        r"sqlplus|sqlldr|expdp|impdp|rman",
        "given",
        "Oracle's user/password@database",
    ),
    Rule(
        "password", r"jdbc:oracle:\w+:[\w$]+/([^@\s]+)@", r"jdbc:oracle:", "given", "the same in an address"
    ),
)

_FILES = (
    Rule(
        "password",
        rf"""(?:\b|\\[nrt])(?:machine\s+\S+|default)\s+(?:(?:login|account)\s+\S+\s+)*password\s+{_WORD}""",
        r"\bpassword\s",
        "given",
        "netrc, on one line or several",
    ),
    Rule(
        "password",
        r"(?m)(?:^|\\n)[\w.*-]+:(?:\d{4,5}|\*):[A-Za-z*][\w$*-]*:[A-Za-z*][\w.$*-]*:([^\s:\\]{4,})(?:$|\\n)",
        r":(?:\d\d\d\d|\*):[A-Za-z*]|\d\d\d\d\d:[A-Za-z*]",
        "word",
        "pgpass: host, port, database, user, password",
    ),
    Rule(
        "token",
        rf"{QUOTE}(?:auth|identitytoken|registrytoken){QUOTE}\s*:\s*{QUOTE}([A-Za-z0-9+/=_.-]{{12,}})",
        r"(?:auth|identitytoken|registrytoken)\W+:",
        "token",
        "docker's config.json",
    ),
    Rule("token", r"""\b_auth\s*=\s*"?([A-Za-z0-9+/=]{12,})""", r"_auth\s*=", "token", "npmrc"),
    Rule(
        "private-key",
        r"client-key-data:\s*\"?([A-Za-z0-9+/=]{40,})",
        r"client-key-data:",
        "shape",
        "kubeconfig",
    ),
    Rule(
        "secret",
        r"kind: *\"?Secret\b(?:[^\n]*\n){1,16}?(?:data|stringData): *\n((?:[ \t]+[\w.-]+: *[^\s#]+ *\n?)+)",
        r"kind: *\"?Secret\b",
        "shape",
        "Kubernetes secret: all its values at once",
    ),
    Rule(
        "secret",
        r"(?:data|stringData): *\n((?:[ \t]+[\w.-]+: *[^\s#]+ *\n)+)kind: *\"?Secret\b",
        r"kind: *\"?Secret\b",
        "shape",
        "the same as kubectl prints it, values first",
    ),
    Rule("password", r"""\bpsk\s*=\s*"?([^"\s\\]{8,})""", r"psk\s*=", "given", "wireless networks"),
    Rule("password", r"(?i)[;\"']\s*PWD=\{([^}\s]{3,})\}", r"(?i)PWD=\{", "given", "ODBC with braces"),
    Rule(
        "cookie",
        r"(?:TRUE|FALSE)\t[^\t\n]*\t(?:TRUE|FALSE)\t\d+\t[^\t\n]+\t([^\t\s]{8,})",
        r"\t(?:TRUE|FALSE)\t\d+\t",
        "token",
        "cookie jar",
    ),
    Rule(
        "password-hash",
        r"(\$(?:1|5|6|apr1|2[abxy]|y|argon2i?d?)\$[A-Za-z0-9./$=,+-]{24,})",
        r"\$(?:1|5|6|apr1|2[abxy]|y|argon2i?d?)\$[A-Za-z0-9./]",
        "mixed",
        "shadow, htpasswd, bcrypt, argon2: enough to try passwords against",
    ),
    Rule(
        "secret",
        r"otpauth://[^\s\"'`]*?[?&]secret=([A-Za-z0-9=]{16,})",
        r"otpauth://",
        "shape",
        "second factor",
    ),
    Rule("secret", r"Unseal Key \d+: *([A-Za-z0-9+/=]{32,})", r"Unseal Key \d", "shape", "Vault"),
    Rule(
        "private-key",
        rf"{QUOTE}[dk]{QUOTE}\s*:\s*{QUOTE}([A-Za-z0-9_-]{{40,}}){QUOTE}",
        rf"[dk]{QUOTE}\s*:\s*{QUOTE}[A-Za-z0-9_-]",
        "token",
        "private part of a JSON Web Key",
    ),
    Rule(
        "private-key",
        r"(?i)private[ _-]?key\W{1,4}(?:0x)?([0-9a-f]{64})\b",
        r"(?i)private[ _-]?key",
        "shape",
        "Ethereum and other keys in hexadecimal",
    ),
    Rule(
        "seed-phrase",
        r"(?i)(?:seed phrase|recovery phrase|mnemonic(?: phrase)?)\W{1,4}"
        r"((?:[a-z0-9]{3,12}[ ,]+){11,23}[a-z0-9]{3,8})\b",
        r"(?i)seed phrase|recovery phrase|mnemonic",
        "shape",
        "twelve to twenty-four words of a wallet",
    ),
)

HEADERS = (
    Rule(
        "cookie",
        rf"""(?i)\bcookie(?:{QUOTE})?\s*[:=]\s*(?:{QUOTE})?((?:[^\s=;"'\\]+=[^;"'\\\r\n]*;\s*)*[^\s=;"'\\]+=[^;"'\\\r\n]+)""",
        r"(?i)cookie\W*[:=]",
        "cookie",
        "Cookie and Set-Cookie, with their names",
    ),
    Rule(
        "cookie",
        r"""(?:\b|\\[nrt])curl\b(?:[^\n|;]|\\\r?\n)*?\s(?:-b|--cookie)[ =]\\*["']?([^"'\s\\]+=[^"'\n\\]+)""",
        r"curl\s",
        "cookie",
        "cookies of a curl call",
    ),
    Rule(
        "cookie",
        r"(?i)\b(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|sessionid|laravel_session|remember_token|"
        r"__(?:host|secure)-[\w-]+|wordpress_logged_in_\w+|\.aspnetcore\.[\w.]+)[=\t]([A-Za-z0-9%._~+/-]{16,})",
        r"(?i)sess|\.sid=|remember_token|__(?:host|secure)-|logged_in_|\.aspnetcore\.",
        "token",
        "session cookies by the names that frameworks give them",
    ),
    Rule(
        "authorization",
        rf"(?i)\bauthorization(?:{QUOTE})?\s*[:=]\s*(?:{QUOTE})?([A-Za-z0-9._~+/=-]{{20,}})",
        r"(?i)authorization",
        "token",
        "header with a key and no scheme",
    ),
    Rule("authorization", r"\bresponse=\\*\"([0-9a-f]{32})", r"response=", "shape", "digest authentication"),
    Rule(
        "url-signature",
        r"(?i)[?&](?:X-Amz-(?:Signature|Security-Token)|X-Goog-Signature|Signature)=([A-Za-z0-9%_~.+/-]{20,})",
        r"(?i)(?:Signature|Security-Token)=",
        "mixed",
        "signed addresses of Amazon and Google",
    ),
    Rule(
        "authorization-code",
        r"(?:callback|redirect|oauth|auth)[^\s?]*\?(?:[^\s#]*&)?code=([A-Za-z0-9_./~%-]{16,})",
        r"[?&]code=",
        "token",
        "what a log-in hands back in an address",
    ),
    Rule(
        "url-password",
        r"\bhttps?://([A-Za-z0-9_-]{20,})@[\w.-]+",
        r"://[^\s/]*@",
        "token",
        "a token as the user of an address",
    ),
)

_WORDS = (
    Rule(
        "password",
        rf"""(?i)(?:{_PASSWORD})(?:{QUOTE})?\s*(?:=|:)\s*(?:{QUOTE})?([^\s"'`\\<>(){{}},;]{{6,}})""",
        rf"(?i)(?:{_PASSWORD})",
        "word",
        "the word for it in other languages",
    ),
    Rule(
        "password",
        rf"""(?i)(?:{_PASSWORD})\s+(?:(?:is|ist|lautet|est|es|è|är|er|on|jest|je)\s*:?\s+)?(?:{QUOTE})?([^\s"'`\\<>(){{}},;]{{8,}})""",
        rf"(?i)(?:{_PASSWORD})",
        "told",
        "said in a sentence: the password is ...",
    ),
)

PLACE_RULES = (*COMMANDS, *_FILES, *HEADERS, *_WORDS)
