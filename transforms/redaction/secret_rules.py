"""Shapes of secrets beyond those of detect-secrets, and the places that show one, as data and by rules."""

from typing import NamedTuple


class Rule(NamedTuple):
    """
    One shape of a secret.

    `pattern` is RE2 syntax over UTF-8; its first group, if any, is the secret, else the whole match is.
    `prefilter` is a cheap RE2 expression that every match contains. `judge` says who has the last word on a
    match (cortex.transforms.redaction.redact): "shape" takes it as it is, others weigh the value.
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
_RUN = r"""(?:[^"'`\\\r\n]|\\+[^"'`\\\r\n])+"""
# In one piece, or in several that the code joins.
_QUOTED = rf"({_RUN}(?:{QUOTE}\s*[+.]\s*{QUOTE}{_RUN})*)"
# What opens a value: a quote, three of them, or what wraps a secret in code.
_OPENS = (
    r"(?:(?:(?:new\s+)?Secret(?:Bytes|Key|Str|Text|Value)\w*|\[\]byte|bytes|(?:Buffer\.)?from|"
    r"(?:Optional)?Field|String)\("
    rf"\s*(?:default\s*=\s*)?)?[a-zA-Z@$]?#{{0,3}}{QUOTE}(?:(?:''|\"\")\s*)?"
)
_BARE = r"""([^\s"'`\\,;&|<>(){}\[\]]+)"""
_LINE_END = r"(?:\r?\n|\\+n)"
# Also to the next line, where YAML has a block there.
_TO = rf"(?:\\*[\"'`])?\]?\s*(?::=|=>|={{1,3}}|:)\s*(?:[|>][-+]?\d?[ \t]*{_LINE_END}\s*)?"

GITLAB = r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-"

# Whose pass it is, where the word could mean one over a text or a picture.
OWNED_PASS = (
    "(?:db|database|smtp|imap|mail|redis|mysql|pg|ssh|sudo|become|admin|root|user|key|store|wifi|wlan|mqtt"
    "|ftp|ldap|"
    "bind|proxy|vpn|service|auth|client|server|rpc|kafka|keystore|truststore|cert|pfx|p12|default|temp|"
    "vault|wallet|sftp|sql|registry|git|repo|nexus|jenkins|zip)[-_.]?pass"
)

# Names of settings that hold a secret; detect-secrets' own list of key names is joined to it.
KEY_NAMES = (
    "passphrase",
    "passcode",
    OWNED_PASS,
    "(?:db|bind|root|admin|user|ldap)[-_.]?pw",
    "(?:auth|nonce|password|secure_auth|logged_in)[-_.]?salt",
    "(?:github|gitlab|gh|ado|azdo|devops)[-_]?pat",
    "(?:hmac|jwt|maps)[-_.:]?key",
    "(?:access|account|admin|app|auth|consumer|deploy|encryption|ingest|integration|license|master|preshared|"
    "private|secret|service|shared|signing|subscription|write)[-_.]?key(?:[-_.]?base)?",
    "api[-_. ]?key",
    "(?:airtable|algolia|datadog|mailgun|openai|pagerduty|sendgrid|stripe|twilio)[a-z_.-]{0,12}key",
    "auth[-_.]?token",
    "token",
    "credentials?",
    "cli[-_]auth",
    "pepper",
)

# A name that ends so tells something about a secret, not the secret: token_count, apiKeyHelper, secret_name.
HARMLESS_KEY_END = (
    r"(?i)(?:ids?|counts?|counter|types?|names?|ur[il]s?|path|files?|dir|env|var|variable|hash|length|size|"
    r"limit|max|min|budget|expir\w*|[-_]at|(?-i:[a-z]At)|fields?|labels?|prefix|suffix|regex|patterns?|used"
    r"|usage|helper|policy|hint|version|tokens|"
    r"izer|index|format|error|message|placeholder|description|title|status|algorithm|algo|scheme|strategy"
    r"|method|scope|ref|page|input|required|rules?|build|checksum|commit|"
    r"digest|etag|revision|sha\d*)$"
)

# The same, but for a value that looks like a secret: PASSWORD_STORE may be the place or the password.
SETTING_KEY_END = r"(?i)(?:timeout|ttl|days|attempts|rounds|enabled|store|manager|command|cmd|provider)$"

# Values that stand for a secret and are none. One such word anywhere is enough.
PLACEHOLDER_PART = (
    r"(?i)redacted|\.\.\.|…|\*\*\*|x{4,}|placeholder|change[-_ ]?me|example|dummy|your[-_ ]|[-_ ]here\b|"
    r"process\.env|environ|getenv|[$#%]\{|\{\{|\$\(|^<[^>]*>?$|^\{|^\$\(?$|^\$(?:[A-Z_]+|(?-i:[A-Z_]"
    r"[A-Z0-9_]*))(?:$|\W)|^%\w*%?$|^(?:https?|file|op|ref\+\w+)://|^(?:\./|~/|/[a-z]+/)|^0+$|^123(?:45678?9?0?)?$"
)

# Values made only of such words are labels, types or stand-ins.
PLACEHOLDER_WORDS = (
    "a access admin an any api auth bar basic baz bearer bool boolean bytes changed client code confirm "
    "credential credentials current default demo disabled enabled encrypted env fake false field float "
    "foo for forgot forgotten from hidden id incorrect input int invalid is key label mandatory me "
    "mismatch missing mock my name new no none not null number object old one optional "
    "options or pass passphrase "
    "passwd password placeholder private public pwd real required reset root sample secret secrets self "
    "some str string strong super test text the this to todo token tokens true two type undefined unknown "
    "unset user username valid validation value visible weak wrong yes"
)  # fmt: skip

# What stands behind a word for a password and speaks of it, in the languages that people type most.
TALK_WORDS = (
    "about absent accept accepted accepts accidentally account actual add added adds after again all allow "
    "allows already also alphanumeric always ambiguous anyone anything anywhere apparently appear appears "
    "argument arguments ascii ask asked asks authentication authenticated automatically available away back "
    "bad base64 based bcrypt because becomes been before being below between blank boolean both breaks "
    "broken build bug bytes cached callback came can cannot caps case catch change changed changes char "
    "character characters chars check checked checker checks class classes clear cleared clears clicked "
    "client column columns come comes coming commit commits common compare compared compliant complex "
    "complexity config configuration configure configured confirm confirmation const contain contains copied "
    "correctly could crash crashes create creates creation criteria data date dated days default defaults "
    "defined delete deleted deletes deprecated derive derived described did different digit digits disable "
    "disabled displayed does doesn't don't done drop dropped during each either email else empty enable "
    "enabled encoding encryption ends enough enter entered entry env environment equal error errors even "
    "everything exactly exist exists expire expired expires expiring expiry export exposed extract fail "
    "failed failing fails failure feature field file files fill filled filter fine first fix fixed fixes "
    "flag flow following forgot form format former forms forwarded four fully function gen generate "
    "generated generates generation generator get gets getting give given gives goes going gone grab group "
    "guess had handle handled handler handles handling hard hardcoded has hash hashed hasher hashes hashing "
    "have haven't having help helper hidden hide hint history how however human hygiene ignore ignored "
    "immediately implement import inactive inaccessible include included includes incorrect input inputs "
    "insecure insensitive inside int integer invalid isn't its itself just keep kept key keychain keyring "
    "keys known label last later leak leaked leaking leaks least leave left length less let level likely "
    "limit limits line link list live lives load local located locked log logged login logins logs lonely "
    "long longer look looks lookup lost lower lowercase made make makes management manager mandatory manual "
    "many masked masking mask match matches matching max maximum may me meant meter might min minimum "
    "mismatch mismatched missing mode modal model module more move moved must mustn't need needed needs "
    "never new next no nobody none not nothing null number object obsolete obviously off ok okay old once "
    "only optional option other otherwise output over own page parameter params parse parsed parser part "
    "pass passed passes passing passphrase passphrases password passwordless passwords paste path pattern "
    "permanently placeholder plaintext policy policies pop populated possible present prevent previous print "
    "printed probably problem prompt prompted prompts prompting property protected protection provide "
    "provided provider public pull push put query quite random randomly rate re read reads really recovery "
    "redacted refused regex reject rejected rejects remain remains remember remove removed rename render "
    "replace reported request require required requirement requirements requires reset resets resetting "
    "resolved retrieve return returned returns reused right rotate rotated rotates rotating rotation rule "
    "rules run runs safe salted same saved saves say says schema screen section secure security see seems "
    "seen select send sending sends sensitive sent separate server service set sets setter setting settings "
    "setup shared short shorter should shouldn't show showing shown shows simply skip some someone something "
    "somewhere specified specific split spraying step stale still stop storage store stored stores str "
    "strength strict string strings strip strong stronger submit supplied support supports supported switch "
    "sync synced take taken takes tell template temporarily temporary test tested testing tests that's their "
    "them these thing those through throw throws time timeout times toggle token tokens trim trimmed true "
    "truncated try trying turn two type typed types unable unchanged undefined unencrypted unknown unless "
    "unnecessary unset unsupported up update updated updates upper uppercase url us usage use used useless "
    "user username usernames users uses using utf8 utils valid validate validated validates validation "
    "validator value values varchar variable variables vary vault verification verified verifies verify view "
    "visible void vulnerable wasn't way weak weaker went what whatever what's whether who whole whose why "
    "widget wiki will within without won't word words work worked working works would wouldn't write writes "
    "written wrong wrote years yes yours false dummy foo bar baz sample example changeme anonymous args "
    "attribute body cache code component constant context cookie credential credentials decode decrypt "
    "decryption dialog doc docs document encode encrypt encrypted endpoint fallback fixture float getter "
    "header identity instance interface internal json kwargs message accordingly actually allowlist argparse "
    "array authenticate autofill combination combo combos complexities details entries grant keyboard lists "
    "numeric obfuscation pair pairs parameters parts portion portions properties protect quoting retry "
    "variants method migration mock name nil node payload pipe plain prefix private process props raw "
    "reference ref regexp response result route row salt scan scheme script secret secrets self session "
    "sha256 size source state status stdin stub suffix table target text textfield title todo tool total "
    "transform unit var vars version warning falsch richtig korrekt leer kurz lang länger schwach sicher "
    "gültig ungültig abgelaufen erforderlich vergessen zurücksetzen zurückgesetzt eingeben notwendig pflicht "
    "gleich nicht muss wird wurde wie zu das der die eine noch nur schon bereits gespeichert verschlüsselt "
    "gehasht benutzer sein incorrecte obligatoire requis requise oublié faux fausse vide court courte trop "
    "faible fort expiré invalide haché hachée stocké chiffré doit est pas le la les un une dans votre entrez "
    "saisir stockée changé modifié correct bon incorrecta incorrecto obligatoria obligatorio requerida "
    "requerido olvidada vacía vacío corta corto débil fuerte demasiado muy caducada inválida válida debe "
    "está es el los una tu su introduzca entender campo cifrada guardada primaria valor foránea pública "
    "privada principal maestra api errada incorreta obrigatória obrigatório esquecida vazia curta fraca deve "
    "não sua digite errata sbagliata obbligatoria obbligatorio dimenticata vuota debole valida scaduta non "
    "il lo nel tua inserire verkeerd onjuist verplicht leeg kort zwak geldig ongeldig verlopen moet niet het "
    "de een vergeten nieprawidłowe niepoprawne wymagane puste krótkie słabe wygasło musi nie zapomniane "
    "błędne jest неверный неверен обязателен обязательное пустой короткий слабый истёк должен не забыли поле "
    "какой угодно access accounts almost any argon argon2 argon2i argon2id arraybuffer authelia bigint "
    "binary bitwarden blob buffer bytea candidate charfield citext clob decoded enum faker guard guessable "
    "int2 int4 int8 irrelevant jsonb jwt keepass keycloak lastpass longtext managers mediumtext navigate "
    "nchar nope nowhere ntext nvarchar oauth oauth2 ours passkey passkeys permission permissions pipeline "
    "playwright privileges promise readonly redundant rights roles secretstr smallint sqlite textarea theirs "
    "timestamp tinytext tricky tuple uint8array ugly unicode unique uuid varbinary varchar2 abgefragt "
    "abgelehnt abfragen ablehnen abgleichen ablegen absichern aktualisieren alle anfordern anfrage anlegen "
    "anmelden anmeldung anzeigen ausgeben auslesen authentifizieren beim bestätigen dort durch eingabe "
    "eingegeben einloggen einmal einsehen einstellen entsperren enthalten erneut erneuern erraten erzeugen "
    "feld festlegen fehlt festgelegt geschützt geschwärzt hart hier hinterlegen kann kein keine klartext "
    "leider lesbar löschen mindestens neu niemals nochmal optionales pflichtfeld prüfen ratsam regelmäßig "
    "schreiben schützen setzen sichtbar sofort soll sollte speichern standardwert starten statt stehen "
    "unbedingt unbekannt unlesbar unsicher unter verbinden vergeben verlangt vorher wechseln wechsel weg "
    "weiterhin werden wieder wiederholen zeichen zuerst zulässig affiché affichée ailleurs aléatoire "
    "caractères champ chiffrée compromis compromise connu connue conservé copié crypté cryptée déjà demandé "
    "demandée différent différente effacé encore enregistré enregistrée envoyé envoyée exigé expirée exposé "
    "facultatif généré générée hashé hashée identique ignoré incorrects inconnu lisible masqué masquée "
    "mémorisé nécessaire nul obligatoires oubliée partagé perdu perdue protégé protégée rejeté refusé "
    "réinitialisé remplacé renouvelé sauvegardé secrète seulement supprimé temporaire toujours transmis "
    "vérifié visibles volée almacenada cambiada caracteres cifrado codificada comprometida diferente "
    "encriptada enviada expirada generada guardado hasheada incorrectas insegura mínimo nueva opcional "
    "perdida requeridas segura temporal armazenada alterada atual criptografada criptografado expirou "
    "inválido mínima necessária nova salva visível caratteri cifrata dimenticato generata inviata nuova "
    "salvata scaduto sicura temporanea visibile beveiligd gewijzigd opgeslagen tekens versleuteld zichtbaar "
    "зашифрован изменён истек обязательно символов хранится letters continue proceed comply ensure unlock "
    "avoid regain triple entrar continuar acceder unusual textfeld passwortfeld eingabefeld administrateur "
    "utilisateur administrador anders versehen distinta distinto diversa diverso stata stato cambiata "
    "cambiato corretta corretto correta correto correcta correcto stringa testo texto texte tekst cadena "
    "chaîne onbekend bekend inloggen chararray bekannt veraltet follow meet fit satisfy improve reflect"
)  # fmt: skip

# A clause ends before one of these; at the beginning they speak of what follows.
CLAUSE_ENDS = (
    "a an are is was were of be am and any as at but by btw for from he here i if in instead into it like "
    "maybe my now on or our out please she since so than that the then there they this to today tomorrow "
    "too tonight until via we when where which while with yesterday you your bitte und für auf aber oder "
    "wenn im ein et pour ou mais sur si s'il svp y para pero o en por e mas em se per ma di voor maar als "
    "dla ale lub na do и для но или на ändern geändert this's thanks thx"
)  # fmt: skip

RULES = (
    # Cloud credentials known by their neighbour
    Rule("aws-secret",
        rf"(?i)aws.{{0,3}}secret.{{0,3}}(?:access)?.{{0,3}}key(?:{_TO}|\s+)(?:{QUOTE})?("
        rf"[A-Za-z0-9/+=]{{40}})",
        r"(?i)aws.?secret|secret.?access.?key", "mixed",
        "secret access key in a profile, an env line, JSON or `aws configure set`"),
    Rule("aws-secret", rf"(?i)(?:secret.?access.?key|session.?token){_TO}(?:{QUOTE})?([A-Za-z0-9/+=]{{40,}})",
        r"(?i)secret.?access.?key|session.?token", "mixed",
        "as the API answers it: SecretAccessKey, SessionToken"),
    Rule("azure-key", r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretValue)=([A-Za-z0-9+/=%]{20,})",
        r"(?i)AccountKey=|SharedAccessKey=|SharedSecretValue=", "mixed",
        "connection strings of Azure storage, service bus, event hubs"),
    Rule("azure-key", r"[?&;]sig=([A-Za-z0-9%+/=_-]{30,})", r"[?&;]sig=", "mixed",
        "Azure shared access signature"),
    Rule("azure-secret", rf"{BOUND}([A-Za-z0-9_~.]{{3}}8Q~[A-Za-z0-9_~.-]{{31,34}})", r"8Q~", "mixed",
        "Azure client secret"),
    # Passwords and tokens in lines, headers and addresses
    Rule("url-password", r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'`<>\\]*:([^\s/"'`<>\\]+)@""", r"://[^\s/]*@",
        "given", "user:password@ in any address, connection strings of databases included"),
    Rule("authorization",
        rf"(?i)authorization(?:{QUOTE})?\s*[:=,]\s*(?:{QUOTE})?(?:bearer|basic|token|apikey|bot|key"
        rf"|negotiate|splunk)\s+([A-Za-z0-9._~+/=-]{{8,}})",
        r"(?i)authorization", "mixed", "HTTP header with its scheme"),
    Rule("authorization", rf"{BOUND}[Bb]earer\s+([A-Za-z0-9._~+/=-]{{20,}})", r"[Bb]earer\s", "mixed",
        "scheme without the header"),
    Rule("password",
        r"""(?:\b|\\[nrt])curl\b(?:[^\n|;]|\\\r?\n)*?\s(?:-u|--user)[ =]?\\*["']?[^\s:"'\\]+:([^\s"'\\]+)""",
        r"curl\s", "given", "user and password of a curl call"),
    Rule("password", r"""(?i)[;"'](?:password|pwd)\s*=\s*([^;"'`\s\\]{3,})""",
        r"(?i)[;\"'](?:password|pwd)\s*=", "given", "connection string of ODBC, ADO or JDBC"),
    Rule("password", r"""(?i)\bIDENTIFIED\s+BY\s+\\*["']([^"'\\\s]{3,})""", r"(?i)IDENTIFIED\s+BY", "given",
        "SQL user"),
)  # fmt: skip

# %s takes the key names. Group 1 is the name, group 2 the value given to it.
KEYWORD_RULES = (
    Rule("env", r"([A-Z0-9_]*(?:%s)[A-Z0-9_]*)=([^\s\"'`\\]+)", r"(?:%s)[A-Z0-9_]*=[^\s\"'`\\]", "env",
        "NAME=value, in a shell or an env file"),
    Rule("quoted", rf"(?i)([\w.-]*(?:%s)\w*){_TO}{_OPENS}{_QUOTED}",
        rf"(?i)(?:%s)\w*{_TO}{_OPENS}", "quoted", "name: 'value' in code, JSON, YAML"),
    Rule("bare", rf"(?i)([\w.-]*(?:%s)\w*){_TO}{_BARE}", rf"(?i)(?:%s)\w*{_TO}[^\s\"'`\\]", "bare",
        "name: value in YAML, INI, queries"),
    Rule("assigned",
        r"(?i)((?:\b|[\w.-]*[_.-]|--)(?:pass(?:word|wd|phrase|code)?|pwd|pw))=([^\s\"'`\\,;&|<>(){}\[\]]{4,})"
        r"(?:[\s&;\"'`\\]|$)",
        r"(?i)(?:pass(?:word|wd|phrase|code)?|pwd|pw)=[^\s\"'`\\,]", "assigned",
        "name=word, in a shell, a file or an address; code has a comma behind its variables"),
    Rule("typed",
        rf"(?i)([\w.-]*(?:%s)\w*)(?:\s*:\s*&?|\s+As\s+)[\w'][\w'<>\[\]., ]{{0,40}}=\s*{_OPENS}{_QUOTED}",
        r"(?i)(?:%s)\w*(?:\s*:\s*&?|\s+As\s+)[\w'][\w'<>\[\]., ]*=", "quoted", "name: type = 'value'"),
    Rule("defined",
        rf"(?i)(?:\bdefine\s+|\bsetq\s+|\bdef\w*\s+|[({{ ]:)([\w.-]*(?:%s)\w*)\s+{QUOTE}{_QUOTED}",
        rf"(?i)(?:%s)\w*\s+{QUOTE}", "quoted", "name 'value', of C and Lisp"),
    Rule("wrapped", r"(?i)([\w.-]*(?:%s)\w*)\s*(?:=>|[:=])\s*%?q[qw]?[({\[|<]([^\s\"'`\\)}\]|>]+)",
        r"(?i)(?:%s)\w*\s*(?:=>|[:=])\s*%?q", "bare", "q{value} of Perl and Ruby"),
    Rule("fallback", r"\$\{([A-Z0-9_]*(?:%s|PW|PASS)):[-=]([^\s}]+)\}", r"\$\{[A-Z0-9_]*(?:%s|PW|PASS):[-=]",
        "env", "what a shell takes where the variable is not set"),
    Rule("fallback",
        rf"(?i){QUOTE}(?:--)?([\w.-]*(?:%s)\w*){QUOTE}\)?\s*(?:,[^()\n]{{0,60}}?\b(?:default|fallback)\s*="
        rf"|\{{|or|\?\?|\|\|)\s*{QUOTE}{_QUOTED}",
        rf"(?i)(?:%s)\w*{QUOTE}\)?\s*(?:,|\{{|or|\?\?|\|\|)", "quoted", "the same in a program"),
    Rule("flag", r"(?i)--([\w-]*(?:%s)\w*) {2,}([^\s\"'`\\]+)", r"(?i)--[\w-]*(?:%s)\w* {2}", "bare",
        "the same, set apart as the words of a help text are too"),
    Rule("flag", rf"(?i)--([\w-]*(?:%s)\w*)(?: |{QUOTE}\s*,\s*)(?:{QUOTE})?([^\s\"'`\\]+)",
        r"(?i)--[\w-]*(?:%s)\w*[\s\"'`\\]", "named",
        "--name value on a command line, or in a list of its words"),
)  # fmt: skip

# The same, where only the value tells.
UNNAMED_RULES = (
    Rule("any",
        rf"(?:^|[\s;\"'`]|\\[nrt])([A-Z][A-Z0-9_]{{3,}})=(?:{QUOTE})?"
        rf"([A-Za-z0-9+/_-]{{20,}}=*)(?:{QUOTE}|[\s;&\\]|$)",
        rf"[A-Z0-9_]=(?:{QUOTE})?[A-Za-z0-9+/_-]", "unnamed",
        "an environment's NAME=value, whatever it is called"),
)  # fmt: skip

# Fields that stand between a name and its value.
_BETWEEN = rf"(?:{QUOTE_OR_NONE}\w+{QUOTE_OR_NONE}\s*[:=]\s*(?:{QUOTE}[^\"'`\n]*{QUOTE}|\w+)[\s,]*){{0,4}}?"

# A name and its value as two fields: a Kubernetes variable, an XML attribute, a cell next to another.
PAIR_RULES = (
    Rule("pair",
        rf"""(?i)\b(?:name|key|variable){QUOTE_OR_NONE}\s*[:=]?\s*{QUOTE_OR_NONE}([\w.-]*"""
        rf"""(?:%s)\w*){QUOTE_OR_NONE}[\s,{{]*{_BETWEEN}"""
        rf"""(?:-\s*)?{QUOTE_OR_NONE}(?:>\s*<value>|(?:\w+:)?(?:value|default){QUOTE_OR_NONE}\s*"""
        rf"""[:=]\s*){QUOTE_OR_NONE}([^\s"'`\\,;<>{{}}]+)""",
        r"(?i)(?:name|key|variable)\W+[\w.-]*(?:%s)", "env", "name: X, value: secret"),
    Rule("pair",
        rf"""(?i)\bvalue{QUOTE_OR_NONE}\s*[:=]\s*{QUOTE_OR_NONE}([^\s"'`\\,;<>{{}}]+){QUOTE_OR_NONE}"""
        rf"""[\s,]+{_BETWEEN}"""
        rf"""{QUOTE_OR_NONE}(?:name|key|variable){QUOTE_OR_NONE}\s*[:=]\s*{QUOTE_OR_NONE}(?P<key>[\w.-]*"""
        rf"""(?:%s)\w*)""",
        r"(?i)(?:name|key|variable)\W+[\w.-]*(?:%s)", "env", "value: secret, name: X"),
    Rule("column", r"(?im)^([^\n]*(?:%s|passwort|kennwort|\bpass\b|\bpw\b)\w*[ \"'`*]*(?:[,|;\t][^\n]*)?)\n",
        r"(?i)(?:%s|passwort|kennwort|\bpass\b|\bpw\b)\w*[ \"'`*]*[,|;\t\n\r]", "column",
        "the head of a table, in CSV and Markdown; its rows follow"),
    Rule("element", r"(?i)<([\w.-]*(?:%s)\w*)(?:\s[^<>]*)?>([^<>\r\n]+)</",
        r"(?i)<[\w.-]*(?:%s)\w*(?:\s[^<>]*)?>[^<>\s]", "quoted", "an XML element named for its secret"),
    Rule("named", rf"""(?i)\bname\s*=\s*{QUOTE}([\w.-]*(?:%s)\w*){QUOTE}[^<>\n]*>\s*([^<>\s]+)\s*</""",
        rf"""(?i)\bname\s*=\s*{QUOTE}[\w.-]*(?:%s)""", "quoted", "an XML element whose name is an attribute"),
    Rule("call", rf"""(?i)\w\(\s*{QUOTE}([\w.-]*(?:%s)\w*){QUOTE}\s*,\s*{QUOTE}{_QUOTED}""",
        rf"(?i)\w\(\s*{QUOTE}[\w.-]*(?:%s)\w*{QUOTE}\s*,", "quoted",
        "a name and its value handed to a call: define, setenv, setProperty"),
    Rule("setter", rf"""(?i)(?:\bset_?|\bwith_?|\.)(\w*(?:%s)\w*)\(\s*{QUOTE}{_QUOTED}""",
        rf"""(?i)(?:\bset_?|\bwith_?|\.)\w*(?:%s)\w*\(\s*{QUOTE}""", "quoted",
        "a call that is named for what it is given"),
    Rule("cell", r"(?i)\|\s*`?([\w.-]*(?:%s)\w*)`?\s*\|\s*`?([^\s|`]+)`?\s*\|", r"(?i)(?:%s)\w*`?\s*\|",
        "bare", "cells of a table"),
    Rule("build", r"(?m)(?:^|\\n)\s*(?:ENV|ARG)\s+([A-Z0-9_]*(?:%s)[A-Z0-9_]*)\s+([^\s\"'`\\]+)",
        r"(?:ENV|ARG)\s+[A-Z0-9_]*(?:%s)", "env", "a Dockerfile's ENV with a blank"),
    Rule("shell", r"\bset(?:x|(?:\s+-\w+)+)\s+([A-Z0-9_]*(?:%s)[A-Z0-9_]*)\s+[\"']?([^\s\"'`\\]+)",
        r"\bset(?:x|(?:\s+-\w+)+)\s+[A-Z0-9_]*(?:%s)", "env", "fish and Windows: set -x NAME value"),
)  # fmt: skip

PERSONAL_RULES = (
    Rule("email", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}", r"@[A-Za-z0-9]",
        "shape", "e-mail address"),
    Rule("phone", r"\+\d{1,3}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,4}\b", r"\+\d", "shape",
        "international number"),
    Rule("phone", r"\(\d{3}\) ?\d{3}[ .-]\d{4}\b", r"\(\d{3}\)", "shape",
        "North American number, area code in brackets"),
    Rule("phone", rf"{BOUND}(\d{{3}}[.-]\d{{3}}[.-]\d{{4}}\b)", r"\d{3}[.-]\d{4}", "shape",
        "North American number"),
)  # fmt: skip

# Detectors left out: rules above take in the whole block or signature where these stop at the head (private
# keys, JWT), keep the name next to the value (Azure) or weigh the value (URLs); an IP address is not a
# secret.
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


# -- Places that show a secret which looks like nothing: flags of commands, files, headers, words before it.

# To the end of one command, over continued lines; a pipe or a semicolon begins another.
_ARGUMENTS = r"(?:[^\n|;&]|\\\r?\n)*?\s"
# In quotes all up to the quote, else one word of the shell.
_WORD = r"""\\*(?:["']([^"'\n\\]+)|([^\s"'\\|;&]+))"""

# The word for a password in the languages of the fifteen largest keyboards, with and without its accents.
_PASSWORD = (
    r"pass(?:wort|ord|phrase|code|word|wd)|kennwort|mot de passe|contrase(?:ñ|n)a|senha|palavra[- ]passe|"
    r"parola(?: d['’]ordine)?|wachtwoord|has(?:ł|l)o|heslo|l(?:ö|o)senord(?:et)?|adgangskoden?|"
    r"clave|kodeord|salasana|(?:ş|s)ifre|jelsz(?:ó|o)|парол[ьяю]|密码|密碼|口令|パスワード|비밀번호|암호|"
    r"\bpw\b|كلمة (?:المرور|السر)|סיסמ[הא]|m(?:ậ|a)t kh(?:ẩ|a)u|kata sandi|รหัสผ่าน|पासवर्ड|κωδικός"
)

# Whose it is; what says that it follows; and the value, in quotes of any language or none.
_FOR = (
    r"\s+(?:for|of|from|on|to|für|von|zum|zur|der|des|pour|del?|du|para|per|da|do|voor|van|dla|от|для|к)\s"
    r"(?:[^\s:]+\s){0,5}?[^\s:]+"
)
_IS = (
    r"\s*(?:=|:|：|は|是|为|為|는|은|—|–)\s*|\s(?:→|->)\s+|['’]s\s+(?:still\s+|now\s+)?|\s+(?:is|was|"
    r"(?:should|must|will) be|ist|war|lautet|es|era|(?:c['’])?est|è|é|är|er|jest|to|je|on)\s*:?\s+"
)
_VALUE = rf"""(?:{QUOTE}|[「『“„«])?([^\s"'`\\<>(){{}},;「」『』“”„«»。、，]{{6,}})"""


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
    Rule("password", rf"(?:\b|\\[nrt])sshpass(?:\s+-(?:[fdP]\s*\S+|[evhV]+))*\s+-p\s*{_WORD}", r"sshpass\s",
        "given", "ssh with a password; the -p of ssh itself is a port"),
    _flag(r"redis-cli|valkey-cli", r"-a\s+|--pass\s+", "Redis"),
    _flag(r"mongo(?:sh|dump|restore|export|import)?", r"-p\s+", "MongoDB"),
    _flag(
        r"(?:docker|podman|buildah|skopeo|nerdctl|helm registry|oc|az|cf|oras) login", r"-p[ =]+", "log-ins"
    ),
    _flag(r"ldap(?:search|add|modify|delete|whoami|passwd)", r"-w\s+", "LDAP"),
    _flag(r"smbclient|rpcclient|mount\.cifs", r"-U\s*\\*[\"']?[\w.\\/-]+%", "user%password of Samba"),
    _flag(r"7za?|7zz|7zr", r"-p", "archives, the password at the flag itself", "argument"),
    _flag(r"7za?|7zz|7zr|rar|unrar", r"-h?p", "the same", "word"),
    _flag(r"zip|unzip", r"-P\s+", "archives", "argument"),
    _flag(r"https?", r"(?:-a|--auth)[ =]+\\*[\"']?[^\s:\"']+:", "HTTPie"),
    _flag(r"keytool|jarsigner|apksigner", r"-(?:src|dest)?(?:store|key)pass[ =]+", "Java key stores"),
    _flag(r"openssl", r"-pass(?:in|out)?\s+\\*[\"']?pass:", "OpenSSL"),
    _flag(r"htpasswd", r"-\w*b\w*\s+(?:-\w+\s+)*(?:[^\s-]\S*\s+)?[^\s-]\S*\s+", "web server"),
    _flag(r"net use", r"/user:\S+\s+", "Windows shares"),
    _flag(r"ngrok", r"authtoken\s+", "ngrok", "token"),
    _flag(r"gh secret set", r"(?:-b|--body)[ =]+", "GitHub"),
    _flag(r"dotnet user-secrets", r"set\s+\S+\s+", ".NET"),
    _flag(r"openssl enc", r"-[kK]\s+", "OpenSSL by a word"),
    _flag(r"mc", r"(?:alias set|config host add)\s+\S+\s+\S+\s+\S+\s+", "MinIO"),
    _flag(r"mosquitto_(?:pub|sub|rr)", r"-P\s+", "MQTT"),
    _flag(r"lftp", r"-u\s+\\*[\"']?[\w.@-]+,\s*", "FTP"),
    _flag(r"sqlcmd|bcp", r"-P\s*", "SQL Server"),
    _flag(r"cqlsh", r"-p\s+", "Cassandra"),
    _flag(r"ssh-keygen", r"-[NP]\s+", "keys of ssh"),
    _flag(r"rabbitmqctl", r"(?:add_user|change_password|authenticate_user)\s+\S+\s+", "RabbitMQ"),
    Rule("password",
        r"""(?m)(?:^|[$#;|&>(\"'`] ?)[ \t]*(?:[^m\s]|m[^ya\s])[\w./-]*\s(?:[^\n|;&]*?\s)?"""
        r"""(?:-u|-U|--user(?:name)?|--admin-user|/u)[ :=]\S+\s(?:[^\n|;&]*?\s)?(?:-p|-P|-w|/p)[ :=]?\\*"""
        r"""["']?([^\s:"'|;\\/]{6,})(?:["'\s\\]|$)""", r"""\s(?:-p|-P|-w|/p)[ :=]?\\*["']?[^\s:]""", "word",
        "a user and a password by their flags, of any program but MySQL's, whose -p with a blank is a "
        "database"),
    Rule("password",
        r"""\s(?:/p[: ]|(?:unlock|create|set)-keychain[^\n|;&]*\s-p\s+|-keypass[ =])\\*["']?([^\s"'"""
        r"""|;&\\/]{6,})""",
        r"\s(?:/p[: ]|\w+-keychain\s|-keypass)", "word",
        "Windows, keychains, a second password of a key store"),
    Rule("token",
        r"(?:\b|\\[nrt])(?:(?:nuget|gem|npm|cargo|twine|helm|vsce|ovsx|hatch|poetry)\s+(?:\w+\s+)?(?:push"
        r"|publish|upload)|"
        r"\w+ (?:auth|service|login) (?:init|login|install|add)|\w+ login)\b(?:[^\n|;&]*?\s(?:-k|-t|-p"
        r"|--key|--pat)[ =]|\s)([A-Za-z0-9+/_-]{24,}=*)(?:\s|$)",
        r"(?:push|publish|login|upload|init|install|add)\s", "random",
        "a token that a program is logged in with"),
    Rule("password",
        rf"(?:\b|\\[nrt])(?:echo|printf)\s+(?:-\w+\s+)?{_WORD}\\*[\"']?\s*\|[^\n]*(?:passphrase-fd"
        rf"|create secret|secrets? (?:set|create|add|put)|smbpasswd|luks|vncpasswd)",
        r"(?:echo|printf)\s[^\n]*\|", "word", "a password handed on by a pipe"),
    Rule("secret", rf"(?:key|pass\w*|secret)\s+<\(\s*(?:echo|printf)\s+{_WORD}\)", r"<\(\s*(?:echo|printf)",
        "word", "the same as a file"),
    Rule("password", r"(?:luks\w+|smbpasswd|vncpasswd|cryptsetup)[^\n|;]*<<<\s*\$?\\*[\"']?([^\s\"']{6,})",
        r"<<<", "word", "the same by a here-string"),
    Rule("password", r"xdotool type (?:--\w+ )*[\"']([^\"'\s]{6,})", r"xdotool type", "word",
        "what is typed by a program"),
    Rule("secret",
        rf"\bread\s+(?:-\w+\s+)*(?:\w*(?:TOKEN|SECRET|PASS\w*|KEY|PW))\s*<<-?\s*\W?\w+\W?{_LINE_END}("
        rf"[^\s\\]{{6,}})",
        r"\bread\s", "word", "a secret read from the next line"),
    Rule("secret",
        r"(?m)^[ \t]*[$#%>❯] (?:sudo )?[^\n]*?(?:\b(?:pass|gopass|passage) (?:show )?[\w./-]+"
        r"|find-\w+-password[^\n]*\s-w\b[^\n]*|SecretAccessKey[^\n]*--output text|"
        r"print-(?:access|identity)-token[^\n]*|get secrets?[^\n]*base64 (?:-d|--decode|-D)|vault (?:kv )?"
        r"(?:get|read) [^\n]*-field[^\n]*|"
        r"\bop (?:read|item get)[^\n]*|\bbw get (?:password|totp)[^\n]*|secret-tool lookup[^\n]*"
        r"|keyring get[^\n]*|"
        r"openssl rand[^\n]*|pwgen[^\n]*|dumpprivkey[^\n]*|gh auth token|auth:token|doppler secrets get"
        r"[^\n]*|get-secret-value[^\n]*--output text|\b(?:cat|head|less) \S*(?:/secrets/\S+|[._-]pass\w*"
        r"|password\S*))"
        rf"[ \t]*{_LINE_END}([^\s\\]{{6,}})[ \t]*(?:{_LINE_END}|$)",
        rf"(?:pass|-w|text|token|base64|-field|op |get|rand|privkey|secret)[^\n]*{_LINE_END}", "printed",
        "a command that prints one secret, and its line"),
    _flag(r"bundle config", r"\S+\s+[^\s:]+:", "Bundler", "word"),
    Rule("token", r"codecov\S*\s[^\n|;&]*?-t[ =]+([0-9a-f-]{20,})", r"codecov\S*\s", "shape", "Codecov"),
    Rule("password", r"""\s--user[ =]\\*["']?[^\s:"'\\/]+:([^\s"'\\]{6,})""", r"\s--user[ =]", "word",
        "user and password of any program"),
    Rule("password", r"""\bsend\s+(?:--\s+)?\\*"([^"\\\s]{6,})\\+[rn]\\*\"""", r"\bsend\s", "word",
        "what a script of expect types"),
    Rule("password",
        r"""(?:\b|\\[nrt])echo\s+(?:-n\s+)?\\*["']?([^\s"'|\\]+)\\*["']?\s*\|[^\n|]*(?:--password-stdin"""
        r"""|--with-token|sudo\s+-S|cryptsetup)""",
        r"--password-stdin|--with-token|sudo\s+-S|cryptsetup", "given", "a password handed over by a pipe"),
    Rule("password",
        r"""(?:\b|\\[nrt])echo\s+\\*["']?[\w.-]+:([^\s"'|\\]+)\\*["']?\s*\|\s*(?:sudo\s+)?chpasswd""",
        r"chpasswd", "given", "user:password handed to chpasswd"),
    Rule("password", r"""(?i)ConvertTo-SecureString\s+(?:-String\s+)?\\*["']([^"'\\]{3,})""",
        r"(?i)ConvertTo-SecureString", "given", "PowerShell"),
    Rule("password",
        rf"(?:--password-stdin|--with-token|sudo\s+-S|cryptsetup|\b(?:passwd|su)\b)[^\n|;]*<<<\s*{_WORD}",
        r"<<<", "given", "a password handed over by a here-string"),
    Rule("password",
        rf"(?:\b|\\[nrt])(?:echo|printf)\s+(?:-\w+\s+|\\*[\"']?%s(?:\\+n)?\\*[\"']?\s+)?{_WORD}\\*[\"']?\s*"
        r"(?:>>?|\|\s*(?:sudo\s+)?tee(?:\s+-a)?)\s*[^\s;&|]*(?:[./_-](?:key|secret|token|pass)|pgpass|"
        r"passw(?:or)?d)(?:\.txt)?\\*[\"']?(?:[\s;&|\\]|$)",
        r"(?:echo|printf)\s[^\n]*(?:key|secret|token|pass|passw(?:or)?d)", "word",
        "a password written to a file that is called so"),
    Rule("secret",
        r"(?:\b|\\[nrt])(?:vault\s+(?:kv\s+(?:put|patch)|write)|"
        r"(?:heroku|fly|flyctl|netlify)\s+(?:config:set|secrets\s+set|env:set))(?:\s[^\n|;&=]*?)?\s"
        r"((?:-?-?[\w.-]+=[^\s|;&\\]+[ \t]*)+)",
        r"vault\s+(?:kv\s|write\s)|config:set|secrets\s+set|env:set", "cookie",
        "what a store of secrets is given, with its names"),
    Rule("secret", rf"--secret-string[ =]+{_WORD}", r"--secret-string", "word", "Secrets Manager of AWS"),
    Rule("secret",
        rf"(?:az\s+keyvault\s+secret\s+set|aws\s+ssm\s+put-parameter){_ARGUMENTS}--value[ =]+{_WORD}",
        r"keyvault\s+secret\s+set|ssm\s+put-parameter", "word", "vaults of Azure and AWS"),
    Rule("password",
        rf"(?i)\bnet1?(?:\.exe)?\s+user\s+\\*[\"']?[\w.\\-]+\\*[\"']?\s+{_WORD}"
        rf"\\*[\"']?[ \t]*(?:/\w|{_LINE_END}|$)",
        r"(?i)\bnet1?(?:\.exe)?\s+user\s", "pair", "Windows users"),
    Rule("secret", r"""--from-literal[= ]\\*["']?[\w.-]+=([^\s"'\\]+)""", r"--from-literal", "given",
        "kubectl create secret"),
    Rule("password", r"\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s+(?:-\w+\s+)*[\w$]+/([^@\s]+)@",
        r"sqlplus|sqlldr|expdp|impdp|rman", "given", "Oracle's user/password@database"),
    Rule("password", r"\b(?:expdp|impdp|sqlldr)\s+[\w$]+/([^@\s]{6,})(?:\s|$)", r"expdp|impdp|sqlldr", "word",
        "the same of a database at home"),
    Rule("secret", rf"config set (?:-\S+ )*--secret (?:-\S+ )*\S+ {_WORD}", r"config set [^\n]*--secret",
        "word", "Pulumi"),
    Rule("password", r"jdbc:oracle:\w+:[\w$]+/([^@\s]+)@", r"jdbc:oracle:", "given",
        "the same in an address"),
)  # fmt: skip

# The seed of a second factor in fours, as pages show it.
_SEED = r"(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4}"

_SEED_PHRASE = (
    r"(?:(?:seed|recovery|backup|secret|wallet) (?:phrase|words)|mnemonic(?: phrase)?|"
    r"(?:12|24|twelve|twenty-four) words(?: (?:for|from|of) [^\n:]{1,30})?)"
)

_FILES = (
    Rule("password",
        rf"""(?:\b|\\[nrt])(?:machine\s+\S+|default)\s+(?:(?:login|account)\s+\S+\s+)*password\s+{_WORD}""",
        r"\bpassword\s", "given", "netrc, on one line or several"),
    Rule("password",
        r"(?m)(?:^|\\n)[\w.*-]+:(?:\d*[56]43\d|\*):[A-Za-z*][\w$*-]*:[A-Za-z*][\w.$*-]*:([^\s:\\]"
        r"{4,})(?:$|\\n)",
        r":(?:\d*[56]43\d|\*):[A-Za-z*]", "given",
        "pgpass: host, port, database, user, password"),
    Rule("password",
        r"(?m)(?:^|\\n)[\w.*-]+:\d{4,5}:[A-Za-z*][\w$*-]*:[A-Za-z*][\w.$*-]*:([^\s:\\]{4,})(?:$|\\n)",
        r":\d\d\d\d+:[A-Za-z*]", "word", "the same at another port, as lines of a log are made too"),
    Rule("password",
        r"""(?:^|[\s;"'])[\w-]+(?:\.[\w-]+)+:\d{4,5}:[\w*-]+:[\w*.-]+:([^\s:\\;"']{6,})(?:$|[\s;"'])""",
        r":\d\d\d\d+:[\w*]", "word", "the same within a line"),
    Rule("password", r"(?:requirepass|masterauth)\s+[\"']?([^\s\"']{6,})", r"requirepass|masterauth", "given",
        "configuration of Redis"),
    Rule("password", r"\bAUTH\s+(?:[\w-]+\s+)?([^\s\"']{12,})", r"\bAUTH\s", "random", "log-in at Redis"),
    Rule("secret", r"(?i)\bcommunity[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9]{12,})", r"(?i)\bcommunity\W", "random",
        "SNMP"),
    Rule("api-key", rf"\bkey\s*=\s*(?:{QUOTE})?([A-Za-z0-9+/_=-]{{16,}})(?:{QUOTE}|\s|$)", r"\bkey\s*=",
        "random", "a key that is called so and no more"),
    Rule("api-key", r"[?&](?:key|auth|code|session|sid|ticket|jwt)=([A-Za-z0-9_-]{20,})",
        r"[?&](?:key|auth|code|session|sid|ticket|jwt)=", "random", "a key in an address"),
    Rule("api-key", rf"Client\(\s*{QUOTE}([A-Za-z0-9_-]{{32,}})", rf"Client\(\s*{QUOTE}", "random",
        "the first thing that a client is made with"),
    Rule("api-key", r"\b[A-Z][A-Z0-9_]*_KEY=([A-Za-z0-9+/_=-]{24,})", r"_KEY=", "random",
        "any key of the environment, where it is as chance throws it"),
    Rule("password", r"(?m)(?:^|\\n)[ \t]*pass[ \t]*[=:][ \t]*([^\s\"'\\]{6,})", r"pass[ \t]*[=:]", "word",
        "pass"),
    Rule("password", r"""[?&"'\s]pass=\$?\\*["']?([^\s"'`\\&;]{6,})""", r"[?&\"'\s]pass=", "word",
        "pass in a form, an address or a log"),
    Rule("password", r"""\b(?:PASS|PW)=\$?\\*["']([^\s"'`\\]{6,})""", r"\b(?:PASS|PW)=", "word",
        "PASS of a shell"),
    Rule("password", r"(?i)\b(?:user|login)\s+\S+\s+pass\s+([^\s\"'`\\]{6,})(?:\s|$)", r"(?i)\bpass\s",
        "word", "pass, a word of a command"),
    Rule("password",
        r"(?i)\b(?:user|login)(?:name)?(?:[ \t]*[:=][ \t]*|[ \t]{2,})\S+\s+(?:pass|pwd?)"
        r"(?:[ \t]*[:=][ \t]*|[ \t]{2,})([^\s\"'`\\;&]{4,})(?:\s|$)",
        r"(?i)\b(?:pass|pwd?)(?:[ \t]*[:=][ \t]*|[ \t]{2,})[^\s\"'(]", "argument",
        "the same as a name and its value, behind the user's"),
    Rule("password",
        rf"(?i)(?:basic_?auth|\bauth\s*=\s*|credentials?)\(\s*{QUOTE}[\w.@-]+{QUOTE}\s*,\s*"
        rf"(?:\w+\()?{QUOTE}{_QUOTED}",
        r"(?i)(?:auth|auth\s*=\s*|credentials?)\(", "pair", "user and password handed to a call"),
    Rule("password", rf"chpasswd[^\n\\]*<<[^\n\\]*{_LINE_END}[\w.-]+:([^\s\\]{{3,}})", r"chpasswd", "given",
        "user:password in what chpasswd reads"),
    Rule("password",
        rf"(?:\b(?i:pw)|\bPASS|(?i:user|login)[^\n]{{0,60}}?\b(?i:pass)){_TO}{QUOTE}([^\"'`\\\n]{{"
        rf"4,60}}){QUOTE}"
        rf"|(?i)\b(?:pw|pass){_TO}{QUOTE}([^\s\"'`\\]{{6,}})", rf"(?i)\b(?:pw|pass){_TO}", "pair",
        "pw, pass"),
    Rule("password", r"""(?i)\b(?:USER|ROLE)\b[^;\n]*?\bPASSWORD\s+\\*['"]([^'"\s\\]{3,})""",
        r"(?i)\bPASSWORD\s+\\*['\"]", "given", "a SQL role's"),
    Rule("password", r"(?i)\bSET\s+PASSWORD\b[^;\n]*?=\s*(?:PASSWORD\()?[\"']([^\"'\s]{3,})",
        r"(?i)SET\s+PASSWORD", "given", "a SQL user's new one"),
    Rule("token",
        rf"{QUOTE}(?:auth|identitytoken|registrytoken){QUOTE}\s*:\s*{QUOTE}([A-Za-z0-9+/=_.-]{{12,}})",
        r"(?:auth|identitytoken|registrytoken)\W+:", "token", "docker's config.json"),
    Rule("token", r"""\b_auth\s*=\s*"?([A-Za-z0-9+/=]{12,})""", r"_auth\s*=", "token", "npmrc"),
    Rule("private-key", r"client-key-data:\s*\"?([A-Za-z0-9+/=]{40,})", r"client-key-data:", "shape",
        "kubeconfig"),
    Rule("secret",
        r"kind: *\"?Secret\b(?:[^\n]*\n){1,16}?(?:data|stringData): *\n((?:[ \t]+[\w.-]+: *[^\s#]+ *\n?)+)",
        r"kind: *\"?Secret\b", "shape", "Kubernetes secret: all its values at once"),
    Rule("secret", r"(?:data|stringData): *\n((?:[ \t]+[\w.-]+: *[^\s#]+ *\n)+)kind: *\"?Secret\b",
        r"kind: *\"?Secret\b", "shape", "the same as kubectl prints it, values first"),
    Rule("password", r"""\bpsk\s*=\s*"?([^"\s\\]{8,})""", r"psk\s*=", "given", "wireless networks"),
    Rule("password",
        r"(?im)\b(?:bind_?pw|rootpw|auth_pass|\w+_authtok|wpa-?psk|requirepass|(?:neighbor \S+|enable"
        r"|line) (?:password|secret)|"
        r"(?:password|secret) [05789]|(?:tacacs|radius)\S* (?:server )?key(?: \d)?|key-string(?: \d)?"
        r"|pre-shared-key\b[^\n]*\skey|"
        r"snmp-server community|plain-text-password\S*)(?:[ \t]*=[ \t]*|[ \t]+)[\"']?([^\s\"'\\;]{6,})",
        r"(?i)(?:pw|pass|tok|psk|password|secret|key|community)\S*\s", "word",
        "a directive of a server, router or directory and its value"),
    Rule("password", rf"(?m):\s+(?:PSK|EAP|XAUTH|NTLM)\s+{QUOTE}([^\"'\s]{{6,}}){QUOTE}",
        r":\s+(?:PSK|EAP|XAUTH|NTLM)\s", "word", "ipsec.secrets"),
    Rule("password", r"(?m)^[a-z_][\w-]*:([^\s:*!][^\s:]{5,}):\d+:\d+:[^:\n]*:/", r":\d+:\d+:", "given",
        "passwd with a password in it"),
    Rule("password",
        r"(?:[\s\"'=/:]|^)[\w.@+-]+:([^\s:@/\"'<>(){}]{6,})@(?:tcp|unix|udp)\(|"
        r"[\s\"'][\w.-]+/[\w.+-]+:([^\s:@/\"'<>(){}]{6,})@(?:\d{1,3}(?:\.\d{1,3}){3}|[a-z][\w-]*(?:\.[a-z]"
        r"[\w-]*)+)\b|"
        r"--?[\w-]*auth[ =]+[\w.-]+:([^\s:@/\"'<>(){}]{6,})(?:[\s\"'@]|$)|\]?:\d{2,5}\s+\S+@[\w.-]+:("
        r"[^\s:]{6,})(?:\s|$)",
        r":[^\s:@]{6,}@|auth[ =]+\S+:|:\d+\s+\S+@", "word",
        "user:password@host without a scheme, domain/user:password@host"),
    Rule("password", r"(?:[\s\"'=]|^)[\w.+-]+:([^\s:@/\"'<>(){}]{6,})@[a-z][\w-]*(?:\.[a-z][\w-]*)+\b",
        r":[^\s:@]{6,}@", "told", "the same, which may be an address by mail"),
    Rule("password",
        rf"(?i)(?:\.(?:login|authenticate|auth)|getConnection|basic\w*auth\w*)\([^()\n]{{1,80}}?,\s*"
        rf"(?:\w+\s*=\s*)?{QUOTE}([^\s\"'`\\]{{6,}}){QUOTE}\s*\)",
        r"(?i)(?:login|auth\w*|getConnection)\(", "pair", "a password as the last argument of a log-in"),
    Rule("password",
        rf"(?i)(?:auth|credentials?|basic\w*){QUOTE_OR_NONE}\s*[:=]\s*[\[(]\s*{QUOTE}"
        rf"[\w.@-]+{QUOTE}\s*,\s*{QUOTE}([^\s\"'`\\]{{6,}})",
        r"(?i)(?:auth|credentials?|basic\w*)\W{1,6}[\[(]", "told", "user and password in a list"),
    Rule("secret",
        rf"(?i)(?:\bjwt\.\w+\([^()\n]{{1,80}}?,\s*|\bhmac\w*(?:\.\w+)?\(\s*|\bfernet\(\s*|createHmac\([^"
        rf"()\n]{{1,30}},\s*)[a-z]?{QUOTE}([^\s\"'`\\]{{8,}}){QUOTE}",
        r"(?i)(?:jwt\.\w+|hmac[\w.]*|fernet)\(", "word", "what a program signs and encrypts with"),
    Rule("api-key", rf"Client\(\s*[\w.]+\s*,\s*{QUOTE}([A-Za-z0-9_-]{{24,}})", r"Client\(\s*\w", "random",
        "the second thing that a client is made with"),
    Rule("password", rf"(?i)\bset[-_]password\b[^\n;|]*?\s{_WORD}\\*[\"']?\s*$", r"(?i)set[-_]password\s",
        "word", "the last word of a command that sets one"),
    Rule("secret",
        r"(?is)\binsert\s+into\s[^;(]{0,80}\([^;)]{0,200}?\b(?:password|passwd|pwd|secret|api_?key"
        r"|access_token|auth_token)\b[^;)]{0,200}\)\s*values\s*\(([^;)]{6,400})\)",
        r"(?i)insert\s+into\s", "row",
        "a row of a table that has passwords: all of it, since its columns are not counted"),
    Rule("secret", rf"(?i)\b(?:SECRET|TOKEN|KEY)\s+{QUOTE}([A-Za-z0-9+/_=-]{{16,}}){QUOTE}",
        rf"(?i)(?:SECRET|TOKEN|KEY)\s+{QUOTE}", "random", "an option of SQL"),
    Rule("secret", r"\bsecret_?id\W{1,3}([A-Za-z0-9-]{20,})", r"secret_?id\W", "random", "AppRole of Vault"),
    Rule("api-key",
        r"(?i)(?:sonar\.login|(?:licen[cs]e|old|new|rotated|validation|decryption|jwt)[-_:]?key)\W{1,4}"
        r"(?:val(?:ue)?\W{1,3})?"
        r"([A-Za-z0-9+/_-]{20,})", r"(?i)sonar\.login|(?:licen[cs]e|old|new|rotated|ion|jwt)[-_:]?key",
        "random",
        "keys whose name is used for others too"),
    Rule("api-key", rf"(?i)\bjwt[-_:.]?key\W{{1,8}}{QUOTE}([^\s\"'\\]{{6,}})", r"(?i)jwt[-_:.]?key", "word",
        "what tokens are signed with"),
    Rule("password", r"(?i)[;\"']\s*PWD=\{([^}\s]{3,})\}", r"(?i)PWD=\{", "given", "ODBC with braces"),
    Rule("cookie", r"(?:TRUE|FALSE)\t[^\t\n]*\t(?:TRUE|FALSE)\t\d+\t[^\t\n]+\t([^\t\s]{8,})",
        r"\t(?:TRUE|FALSE)\t\d+\t", "token", "cookie jar"),
    Rule("password-hash", r"(\$(?:1|5|6|apr1|2[abxy]|y|argon2i?d?)\$[A-Za-z0-9./$=,+-]{24,})",
        r"\$(?:1|5|6|apr1|2[abxy]|y|argon2i?d?)\$[A-Za-z0-9./]", "mixed",
        "shadow, htpasswd, bcrypt, argon2: enough to try passwords against"),
    Rule("secret", r"otpauth://[^\s\"'`]*?[?&]secret=([A-Za-z0-9=]{16,})", r"otpauth://", "shape",
        "second factor"),
    Rule("secret",
        r"(?i)\b(?:set-?up|secret|authenticator|manual(?: entry)?|totp|otp|2fa|mfa) (?:key|code|seed)"
        rf"\W{{1,4}}({_SEED}|[A-Z0-9]{{16,}})", r"(?i) (?:key|code|seed)\W", "word",
        "second factor, as it is typed where no code is scanned"),
    Rule("recovery-codes",
        r"(?i)(?:recovery|backup|scratch|emergency|one[- ]time|2fa|wiederherstellungs-?) ?codes?\b"
        rf"[^\n\\]{{0,80}}((?:{_LINE_END}[ \t]*(?:[-*•] |\d{{1,2}}[.):] *)?"
        r"[A-Z0-9]{4,12}(?:[- ]{1,4}[A-Z0-9]{4,12}){0,3}[ \t]*){3,})", r"(?i) ?codes?\b", "codes",
        "second factor: the codes that are kept for its loss, all at once"),
    Rule("password", r"\bWIFI:(?:[A-OQ-Z]:[^;]*;)*P:([^;\n]{4,});", r"\bWIFI:", "given",
        "wireless network, as a picture to scan says it"),
    Rule("secret",
        rf"\b(?:cat|bat|less|more|head|tail|type)\s+\S*(?:[./_-](?:key|secret|token)|passw(?:or)?d)"
        rf"(?:\.txt)?{_LINE_END}([^\s\\]{{8,}})(?:{_LINE_END}|$)",
        rf"(?:key|secret|token|passw(?:or)?d)(?:\.txt)?{_LINE_END}", "token",
        "a file called a key or token, and its one line"),
    Rule("secret", r"Unseal Key \d+: *([A-Za-z0-9+/=]{32,})", r"Unseal Key \d", "shape", "Vault"),
    Rule("private-key", rf"{QUOTE}[dk]{QUOTE}\s*:\s*{QUOTE}([A-Za-z0-9_-]{{40,}}){QUOTE}",
        rf"[dk]{QUOTE}\s*:\s*{QUOTE}[A-Za-z0-9_-]", "token", "private part of a JSON Web Key"),
    Rule("private-key", r"(?i)private[ _-]?key\W{1,4}(?:0x)?([0-9a-f]{64})\b", r"(?i)private[ _-]?key",
        "shape", "Ethereum and other keys in hexadecimal"),
    Rule("seed-phrase", rf"(?i){_SEED_PHRASE}(?: (?:is|was|are))?\W{{1,4}}((?:\d{{1,2}}[.):] *)?"
        rf"(?:[a-z0-9]{{3,12}}(?:[ ,;]+|{_LINE_END})+(?:\d{{1,2}}[.):] *)?){{11,23}}[a-z0-9]{{3,8}})\b",
        rf"(?i){_SEED_PHRASE}", "seed", "twelve to twenty-four words of a wallet"),
)  # fmt: skip

HEADERS = (
    Rule("cookie",
        rf"""(?i)\bcookie(?:{QUOTE})?\s*[:=]\s*(?:{QUOTE})?((?:[^\s=;"'\\]+=[^;"'\\\r\n]*;\s*)*"""
        rf"""[^\s=;"'\\]+=[^;"'\\\r\n]+)""",
        r"(?i)cookie\W*[:=]", "cookie", "Cookie and Set-Cookie, with their names"),
    Rule("cookie",
        r"""(?:\b|\\[nrt])curl\b(?:[^\n|;]|\\\r?\n)*?\s(?:-b|--cookie)[ =]\\*["']?([^"'\s\\]+=[^"'\n\\]+)""",
        r"curl\s", "cookie", "cookies of a curl call"),
    Rule("cookie",
        r"(?i)\b(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|sessionid|laravel_session"
        r"|remember_token|__(?:host|secure)-[\w-]+|wordpress_logged_in_\w+|\.aspnetcore\.[\w.]+)[=\t]("
        r"[A-Za-z0-9%._~+/-]{16,})",
        r"(?i)sess|\.sid=|remember_token|__(?:host|secure)-|logged_in_|\.aspnetcore\.", "token",
        "session cookies by the names that frameworks give them"),
    Rule("authorization",
        rf"(?i)\bauthorization(?:{QUOTE})?\s*[:=]\s*(?:{QUOTE})?([A-Za-z0-9._~+/=-]{{20,}})",
        r"(?i)authorization", "token", "header with a key and no scheme"),
    Rule("authorization",
        rf"(?i)\bX-(?:[\w-]+-)?(?:auth|sid|session)(?:{QUOTE})?\s*[:=,]\s*(?:{QUOTE})?("
        rf"[A-Za-z0-9._~+/=-]{{16,}})",
        r"(?i)\bX-(?:[\w-]+-)?(?:auth|sid|session)\W", "random", "a header of one's own"),
    Rule("authorization", r"\bresponse=\\*\"([0-9a-f]{32})", r"response=", "shape", "digest authentication"),
    Rule("url-signature",
        r"(?i)[?&](?:X-Amz-(?:Signature|Security-Token)|X-Goog-Signature|Signature)=("
        r"[A-Za-z0-9%_~.+/-]{16,})",
        r"(?i)(?:Signature|Security-Token)=", "mixed", "signed addresses of Amazon and Google"),
    Rule("authorization-code",
        r"(?:callback|redirect|oauth|auth)[^\s?]*\?(?:[^\s#]*&)?code=([A-Za-z0-9_./~%-]{16,})", r"[?&]code=",
        "token", "what a log-in hands back in an address"),
    Rule("authorization-code",
        r"(?i)://[^\s\"'`]*/[\w-]*(?:reset|magic|verif|confirm|invit|activat)[\w-]*/([A-Za-z0-9_-]{20,})",
        r"(?i)(?:reset|magic|verif|confirm|invit|activat)[\w-]*/", "random",
        "links by mail that stand for a log-in"),
    Rule("webhook",
        r"://[^\s\"'`]*(?:hooks?[./]|webhooks?/|/live_?)[^\s\"'`]*?[/_]([A-Za-z0-9-]{12,})(?:[\s\"'`/?]|$)",
        r"://[^\s\"'`]*(?:hook|/live)", "random", "an address that lets in whoever has it"),
    Rule("url-password", r"\bhttps?://([A-Za-z0-9_-]{20,})@[\w.-]+", r"://[^\s/]*@", "token",
        "a token as the user of an address"),
)  # fmt: skip

_WORDS = (
    Rule("password", rf"(?i)(?:{_PASSWORD})(?:{_FOR}|{QUOTE})?(?:{_IS}){_VALUE}", rf"(?i)(?:{_PASSWORD})",
        "stated", "the password is ..., the password for the wiki: ..."),
    Rule("password",
        rf"(?i)(?:[,/&]|\b(?:with|and|mit|und|avec|et|con|y|e|com|с|и))\s+(?:(?:the|dem|das|le|la|el)\s+)?"
        rf"(?:{_PASSWORD})\s+{_VALUE}",
        rf"(?i)(?:{_PASSWORD})\s", "passing", "user ana, password ..."),
    Rule("password",
        rf"(?i)\b(?:set|reset|chang\w+|updat\w+)\s+(?:\w+\s+){{0,3}}?(?:{_PASSWORD})"
        rf"(?:{_FOR})?\s+to\s+{_VALUE}",
        rf"(?i)(?:{_PASSWORD})", "stated", "set the password to ..."),
    Rule("password", rf"(?i)(?:{_PASSWORD})\s+{_VALUE}", rf"(?i)(?:{_PASSWORD})\s", "told",
        "the next word behind it"),
    Rule("pin",
        rf"(?:\bPIN(?:[- ](?i:code))?|\b(?i:door|gate|alarm|safe|vault|entry|access|unlock)[- ](?i:code|pin))"
        rf"(?i:{_FOR})?(?i:{_IS})(\d{{4,8}}#?)(?:[^\w.]|\.?\s|\.?$)",
        r"\bPIN\b|(?i:door|gate|alarm|safe|vault|entry|access|unlock)[- ](?i:code|pin)", "shape",
        "what is typed at a door or a card"),
    Rule("password", rf"(?i)(?:{_PASSWORD})\s*\(([^\s\"'`\\()]{{6,}})\)", rf"(?i)(?:{_PASSWORD})\s*\(",
        "stated",
        "in brackets"),
    Rule("password", rf"(?i)парол[ьяюе]м?\s+(?:от|для|к|на)\s+\S+\s+{_VALUE}", r"(?i)парол[ьяюе]м?\s",
        "passing", "the same without a verb, as Russian says it"),
    Rule("password", rf"(?i)\s([^\s\"'`\\]{{8,}})\s+as\s+(?:\w+\s+){{0,2}}(?:{_PASSWORD})",
        rf"(?i)\sas\s+(?:\w+\s+){{0,2}}(?:{_PASSWORD})", "passing",
        "the other way round: ... as the password"),
    Rule("password",
        r"""(?i)\b(?:creds?|credentials|log-?in|zugang\w*)\s*:\s*[\w.@-]+\s*[/,:|]\s*([^\s"'`\\]{6,})""",
        r"(?i)(?:creds?|credentials|log-?in|zugang\w*)\s*:", "passing", "user and password in one breath"),
    Rule("password",
        r"(?i)\b(?:log|sign)(?:ged|ging|s)?[- ]?in\s+(?:as|with)\s+[^\s,]+,?"
        rf"\s+(?:with|and|using|/)\s+{_VALUE}",
        r"(?i)\b(?:log|sign)(?:ged|ging|s)?[- ]?in\s+(?:as|with)\s", "passing", "log in as admin with ..."),
    Rule("token",
        rf"(?i)\b(?:key|token|secret|password|passphrase)\b[^\n:]{{0,80}}:[ \t]*(?:{_LINE_END}[ \t]*){{1,3}}"
        rf"([A-Za-z0-9_+=~-]{{16,}})[ \t]*(?:{_LINE_END}|$)",
        r"(?i)(?:key|token|secret|password|passphrase)\b[^\n]*:\s*(?:\n|\\+n)", "random",
        "a secret on a line of its own below what announces it"),
    Rule("password",
        rf"(?i)\bpass ?(?:phrase|code)(?:{QUOTE})?\s*(?:[:=]|\bis\b)\s*{QUOTE}([a-z0-9]+(?: "
        rf"[a-z0-9]+){{3,9}}){QUOTE}",
        r"(?i)pass ?(?:phrase|code)", "seed", "a passphrase of several words"),
    Rule("password", rf"(?im)^[\s$>]*password\s+\S+\s+=\s+{_VALUE}", r"(?i)password\s+\S+\s+=", "word",
        "PASSWORD user = ..."),
    Rule("password", rf"(?i)\b(?:using|with) (?:the )?password:?\s+{_VALUE}",
        r"(?i)(?:using|with) (?:the )?password", "stated", "a log-in in a log"),
    Rule("password", r"(?i)\bapp(?:lication)?[- ]password\W{1,4}((?:[a-z0-9]{4}[ -]?){3}[a-z0-9]{4})\b",
        r"(?i)app(?:lication)?[- ]password", "shape", "Google's and Apple's, sixteen letters in fours"),
    Rule("password", r"""(?m)(?i:\[sudo\] password for [\w.-]+|@[\w.-]+'s password|password for '[^'\n]*'|"""
        r"""\benter (?:[\w']+ ){0,3}pass ?(?:word|phrase)(?: for [^\n]{1,200}?)?):"""
        rf"""[ \t]*([^\s"'`\\][^\r\n"'`\\]{{2,60}}?[^\s"'`\\])[ \t]*(?:{_LINE_END}|$)""",
        r"(?i)pass ?(?:word|phrase)", "prompt",
        "typed at the prompt of a terminal, where one sees it"),
    Rule("token",
        r"(?i)\b(?:access|api|app|auth|bearer|bot|client|deploy|personal|secret|server|service|webhook)"
        r"[-_ ]?(?:key|secret|token)\s+(?:(?:for|of|to|we|you|I|that)\s+(?:[^\s:]+\s+){1,5}?)?(?:"
        r"(?:is|was|ist"
        r"|lautet)\s*:?\s+)?"
        rf"{QUOTE_OR_NONE}([A-Za-z0-9_+=~-]{{16,}})",
        r"(?i)(?:access|api|app|auth|bearer|bot|client|deploy|personal|secret|server|service|webhook)"
        r"[-_ ]?(?:key|secret|token)\s", "random", "said in a sentence, or the next word of a command"),
)  # fmt: skip


# Unmistakable words for a password; in Romance languages the other ones are a key or a word too.
_SURE_NAME = (
    r"(?:\b(?:pass(?:wor[dt]|phrase|code|wd)s?|[\w-]+pass?wor[dt]|kennwort|mot de passe|"
    r"mdp|contrase(?:ñ|n)a|senha|palavra[- ]passe"
    r"|wachtwoord|has(?:ł|l)o|heslo|l(?:ö|o)senord(?:et)?|adgangskoden?|salasana|"
    r"(?:ş|s)ifre|jelsz(?:ó|o)|парол[ья]"
    r"|m(?:ậ|a)t kh(?:ẩ|a)u|kata sandi)\b|_pass(?:word|wd)\b)"
)
# Names that other things have too; where it is said whose they are, they are sure.
_SHORT = r"(?:^[ \t]*pass|\bpwd?|_(?:pass|pw))"
_SURE = rf"(?:{_SURE_NAME}|\bpw\b|_(?:pass|pw)\b)"
SURE_END = r"(?i)(?:pass(?:word|wd|phrase|code|wort)?|kennwort|pwd|pw)$"
SURE_WORD = f"(?i){_SURE}"
_SURE_PREFILTER = (
    r"(?i)(?:pass[wpc]|pwd\b|\bpw\b|kennw|mot de|mdp|contrase|senha|[- ]passe\b|"
    r"wachtw|has[łl]o|heslo|senord|adgangs|salasana|ifre|jelsz|парол|kh[ẩa]u|"
    r"kata sandi|_pass)"
)
_REST = r"[ \t]*([^\s][^\r\n]{3,90})"
_GIVES = r"[ \t]*(?:[:：]|[ \t]=[ \t])(?:[ \t]*[|>][-+]?\n)?"
_TO_SET = (
    r"(?:set|reset|chang|updat|rotat|switch|put|made|(?:ge)?setz|gesetzt|(?:ge)?änder|"
    r"stell|mis|met|modifi|cambi|pus|pon|mud|"
    r"troqu|alter|defin|impost|zmien|ustaw|verander|zet)[^\s]*"
)
CLAUSES = (
    Rule("password", rf"(?i)(?:{_SURE})(?:{_FOR}|{QUOTE}|\s(?:here|again|there))?"
        rf"(?:\s+(?:is|was|ist|war|lautet|es|era|(?:c['’])?est|était|è|é|är|er|jest|is now|will be|"
        rf"should be)\s*:?\s+|['’]s\s+){_REST}"
        rf"|has(?:ł|l)o(?:{_FOR})?\s+to\s+{_REST}",
        _SURE_PREFILTER, "clause", "the password is, in words"),
    Rule("password",
        rf"(?im)(?:(?:{_SURE_NAME}|{OWNED_PASS})(?:{_FOR})?|{_SHORT}{_FOR}){QUOTE_OR_NONE}{_GIVES}{_REST}",
        _SURE_PREFILTER + r"|(?i:pass[ \t]*[:=])", "line", "password: the rest of its line"),
    Rule("password",
        rf"(?im)(?:{_SHORT}{QUOTE_OR_NONE}{_GIVES}|(?:{_SURE}|\bpwd)(?:{_FOR})?[ \t]*(?:→|->)){_REST}",
        rf"(?i)(?:pass|pwd?){QUOTE_OR_NONE}[ \t]*[:：=]|[a-zьяł][ \t]*(?:→|->)", "marked line",
        "the same behind a name that other things have too, or an arrow"),
    Rule("password",
        rf"(?i)(?:[,/&(]|\b(?:with|uses?|using|and|mit|und|avec|et|con|y|com|met|en|z|i))\s*(?:(?:the|"
        rf"dem|das|le|la|el|a|het)\s+)?"
        rf"(?:{_SURE}|\bclave)[ \t]+{_REST}", _SURE_PREFILTER.replace("kennw", "kennw|clave"), "clause",
        "with the password, in words"),
    Rule("password",
        rf"(?i)\b{_TO_SET}\s+(?:\S+\s+){{0,3}}?(?:{_SURE})(?:{_FOR})?\s+(?:to|auf|"
        rf"à|a|para|na|naar)\s+{_REST}",
        _SURE_PREFILTER, "marked clause", "set the password to, in words"),
    Rule("password", rf"(?i)\b{_SURE}\s+auf\s+{_REST}", r"(?i)wort\s+auf", "marked clause",
        "the same with its verb behind"),
    Rule("password",
        rf"(?i)(?:\b(?:changed|updated|rotated|switched|(?:i|we|have|has|was) (?:re)?set|mis|changé|cambié|"
        rf"mudei|alterei|troquei)\s+(?:\S+\s+){{0,3}}?(?:{_SURE})(?:{_FOR})?\s+(?:to|à|a|para)\s+{_REST}|"
        rf"{_SURE}\s+(?:(?:wurde|habe? ich)\s+)?auf\s+(\S{{4,90}})\s+ge(?:ändert|setzt|stellt))",
        r"(?i)(?:changed|updated|rotated|switched|(?:i|we|have|has|was) (?:re)?set|mis|changé|cambié|mudei|"
        r"alterei|troquei)\s|auf\s+\S+\s+ge[äs]", "clause",
        "that it was set, where the word is no purpose as in: reset it to continue"),
    Rule("password",
        rf"(?i)\b(?:use|put|enter|type|typed|try|set)\s+{QUOTE_OR_NONE}([^\s\"'`]{{4,}}){QUOTE_OR_NONE}\s+"
        rf"(?:as\s+|(?:when|if)\s+(?:it|they|he|she)\s+asks?\s+(?:you\s+)?for\s+)(?:the\s+|"
        rf"a\s+|your\s+)?(?:\w+\s+)?(?:{_SURE})(?:[.,;!)]|\s(?:in|for|when|on|to|and)\s|"
        rf"\s*$)",
        _SURE_PREFILTER, "clause", "put it as the password"),
    Rule("password",
        rf"(?i)\bprompted for (?:a|the|your) (?:{_SURE})\s*,?\s+(?:enter|type|use|give)\s+{_REST}",
        r"(?i)prompted for", "clause", "what to enter at a prompt"),
    Rule("password",
        rf"(?i)\b(?:what(?:['’]s|\s+is|\s+was)|which)\s[^\n?]{{0,40}}?(?:{_SURE})[^\n?]{{0,20}}\?"
        rf"\s*\n(?:>\s*)?(?:\w+:\s+)?{_REST}",
        r"(?i)what", "line", "asked on one line and answered on the next"),
    Rule("password", rf"(?i)(?:{_SURE}|pass)[\"'`\])]{{0,4}}:?[ \t]*\n['\"]([^'\"\n]{{4,}})['\"]\s*(?:\n|$)",
        r"(?i)pas+w?\w*\W*\n['\"]", "spelt",
        "what an interpreter answers to its name"),
    Rule("password",
        rf"(?i)(?:\w\([^()\n]{{0,12}}|=|#|[(]/|_in[ (][\"'])(?:pass(?:word|wd|code|"
        rf"phrase)?|pwd)\b[\])(/\w]{{0,6}}"
        rf"(?:[\"'`/\]][\])(/\w\"'`]{{0,6}},[ \t]*(?:with:[ \t]*)?|[\"'`]?[\])]{{0,3}}"
        rf"\.(?:type|fill|send_?keys|set\w*|enter\w*|press\w*)\(\s*){QUOTE}"
        rf"([^\"'`\n\\]{{4,40}}){QUOTE}[ \t]*(?:[);]|\n|$)",
        r"(?i)(?:pass|pwd)", "spelt", "what a test types into a form"),
    Rule("password",
        r"(?i)\bIDENTIFIED\s+(?:WITH\s+\S+\s+)?(?:BY|AS)\s+\\*[\"']([^\"'\\\n]{3,})|"
        r"\bPASSWORD\s+\\*'([^'\\\n]{3,})'", r"(?i)IDENTIFIED\s|PASSWORD\s",
        "spelt", "SQL users and roles, in words too"),
    Rule("password", r"(?i)[;\"'](?:password|pwd)\s*=\s*([^\"'`\s\\]{3,}?)[ \t]*(?:[\"'`]|$|\r?\n)",
        r"(?i)[;\"'](?:password|pwd)\s*=", "given",
        "the last of a connection string, with a semicolon in it"),
)  # fmt: skip

# A word with a digit or a sign; behind "and" an ordinary word is more often a second thing to do.
_MARKED = r"(?:[^\s/\"'`\\,;]*(?:[\d#%&*+@~^$=]|[!?]\w)[^\s/\"'`\\,;]*)"

# Pairs and codes that have no such word near.
_PAIRS_AND_CODES = (
    Rule("pin", r"(?:(?:\bPIN\b|\b(?i:pass ?code)\b)[^\n]{0,60}?[\s:=\"'(]"
        r"|(?i:\b(?:the|my|our|its|your) pin(?: (?:code|for|of|to)\b[^\n]{0,50}?)? is\s))"
        r"(\d{4,8}#?)(?:[^\w.:/-]|[.]?\s|[.]?$)",
        r"(?i)\bpin\b|pass ?code",
        "shape", "a PIN and the digits behind it"),
    Rule("pin", rf"(?i)\bpin{QUOTE_OR_NONE}\s*[:=]\s*{QUOTE}(\d{{4,8}}){QUOTE}", r"(?i)pin\W{1,5}\d", "shape",
        "a field called pin"),
    Rule("pin",
        r"(?i)\b(?:(?:verification|login|log-in|security|sms|2fa|mfa|otp|one[- ]time|"
        r"confirmation|unlock|auth|apple id|account|"
        r"recovery|backup)[- ]?(?:pass ?)?(?:codes?|password|pin)|otp|tan)(?:\s+for\s+\S+(?:\s\S+"
        r"){0,3}?)?(?:\s+(?:is|are|was|were)\s*:?|\s*[:=])\s+([a-z\d]*\d[a-z\d]*(?:[- ][a-z\d]{3,"
        r"}){0,3})",
        r"(?i)(?:codes?|password|pin|otp|tan)\s*(?:is|are|was|were|:|=|for)", "code",
        "codes of a second factor"),
    Rule("pin",
        r"(?i)\b(?:recovery|backup) codes?:\s*\n((?:[ \t]*(?:[-*•]|\d+[.)])?[ \t]*[a-z\d]*\d[a-z"
        r"\d]*(?:[- ][a-z\d]{3,}){0,3}[ \t]*(?:\n|$))+)",
        r"(?i)(?:recovery|backup) codes?:", "code", "one or two below their heading"),
    Rule("card",
        r"(?i)\b(?:cvv2?|cvc2?)\W{1,3}(?:is )?(\d{3,4})\b|\b(?:ssn|social security)\b[^\n]{0,40}?"
        r"(\d{3}-\d{2}-\d{4})\b|\bcard\b[^\n]{0,20}?\b(\d{4}(?:[ -]?\d{4}){3})\b",
        r"(?i)cv[vc]|ssn|social sec|\bcard\b[^\n]*\d\d\d\d", "shape", "what cards and persons are known by"),
    Rule("password",
        r"(?i)\b(?:creds?|credentials|log-?in|account|zugang\w*|user(?:name)?)(?:\s+(?:is|"
        r"are|sind)|\s*:)[ \t]+[\w.@-]+[ \t]*(?:/[ \t]*([^\s/\"'`\\,;]{4,}[.]?)|"
        rf"(?:\band\b|\bund\b|&|,)[ \t]*({_MARKED}))(?:[.,;"
        r"!)]|\s+(?:for|on|if|to|in)\s|[ \t]*(?:\n|$))",
        r"(?i)(?:creds?|credentials|log-?in|account|zugang\w*|user(?:name)?)(?:\s+(?:is|are|sind)|\s*:)",
        "pair", "user and password, behind a word for both"),
    Rule("password",
        r"(?i)\b(?:log|logged|sign|signed|get|connect)[- ]?in\s+(?:as|with|using)\s+(?:[\w.-]+@[\w"
        rf".-]+|admin|root)\s*(?:/\s*([^\s\"'`\\,;]{{6,}})|(?:,|and|with|using)\s*({_MARKED}))",
        r"(?i)in\s+(?:as|with|using)\s", "pair", "log in with"),
    Rule("password",
        r"(?i)\b(?:use|try|with|mit|is|con|avec|is)\s+(?:[\w.-]+@[\w.-]+|admin|root|"
        r"ubuntu|administrator|postgres|guest|operator|test|demo)(?:\s/\s(\S[^\n,;]{3,40}?)|/(\S{4,40}?))(?:[.,;"
        r"!)]|\s+(?:to|for|on|in|if|an|at)\b|[ \t]*(?:\n|$))",
        r"(?i)(?:@[\w.-]+|admin|root|ubuntu|or|postgres|guest|test|demo)\s?/", "pair", "admin / word"),
    Rule("password",
        r"(?im)\b(?:snmp-server\s+community|enable (?:password|secret)(?: \d)?|username \S+ (?:pa"
        r"ssword|secret) \d|wpa_passphrase\s+\S+)\s+\"?([^\s\"\d][^\s\"]{3,})(?:\"|"
        r"\s|$)",
        r"(?i)community|(?:password|secret)\s|wpa_pass", "spelt", "a router's directives"),
    Rule("password", r"\bpsk\s*=\s*\"([^\"\n\\]{4,})\"", r"psk\s*=", "given", "wireless networks, in words"),
    Rule("password", r"\bnet use [^\n]*?\\\\\S+\s+([^\s/*]\S*)\s+/user:", r"net use", "given",
        "Windows shares, before the user"),
    Rule("password",
        rf"(?im)^[ \t>]*(?:pass(?:word|wd|code)[ \t]{{2,}}(\S+)|pwd?[ \t]{{2,}}({_MARKED}))[ \t]*$",
        r"(?i)(?:pass(?:word|wd|code)|pwd?)[ \t]{2,}\S", "spelt", "a list in two columns"),
)  # fmt: skip

# By where they stand: one scan looks for each of these.
PLACE_RULES = (COMMANDS, _FILES, (*HEADERS, *_WORDS), _PAIRS_AND_CODES)

# What no rule above has in view: a word for a secret, and behind it on its line what looks thrown by chance.
_NEAR_WORD = (
    r"(?i:(?:\b|_)pass(?:word|wd|phrase|code)?(?:\b|_)|password|passwor?t|\bpwd?\b|_pw\b|secret|\btoken\b"
    r"|_token|credential|api.?key|\blog-?in\b|\bauth\b|_auth\b|auth_)"
)
# All rules of the groups that a name calls, and what stands near one, have one of these in what they match.
NAME_CUE = (
    rf"{_SURE_PREFILTER}|(?i:pass(?:[^ei]|$)|\bpw\b|[_.-]pw|passwor|identified|"
    rf"clave|log-?in\b|\bauth\b|_auth\b|auth_|"
    r"secret|token|credential|api.?key)"
)
NEARBY = (
    Rule("secret", rf"{_NEAR_WORD}[^\n]{{0,60}}?{QUOTE}([^\s\"'`\\,;:|<>(){{}}\[\]]{{10,64}}){QUOTE}",
        _NEAR_WORD, "near", "in quotes"),
    Rule("secret",
        rf"{_NEAR_WORD}[^\n]{{0,60}}?[\s:=/,]([^\s\"'`\\,;:/|<>(){{}}\[\]]*\d[^\s\"'`\\,;:/|<>(){{}}\[\]]*)"
        rf"(?:[\s,;&'\"]|$)",
        _NEAR_WORD, "near", "the first word with a digit"),
)  # fmt: skip
