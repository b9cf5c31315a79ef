"""Of tokens, passwords and what only looks like them: how many are missed, and how many go wrongly."""

import random
import re
import time

from cortex.transforms.redaction.redact import redact

_HEX = "0123456789abcdef"
_WORDY = "abcdefghijkmnpqrstuvwxyz0123456789"
_ALNUM = "ABCDEFGHJKLMNPQRSTUVWXYZ" + _WORDY
_ALPHABETS = {
    "h": _HEX,
    "w": _WORDY,
    "a": _ALNUM,
    "u": _ALNUM + "-_",
    "b": _ALNUM + "+/",
    "U": _ALNUM.upper(),
}
_RUN = re.compile(r"<([hwauUb])(\d+)>")

# A run such as <a40> is made when the test runs: its letter names the alphabet, its number how long it is.
TOKENS = """
AQ.Ab8RN<u48>
api_org_<a34>
wandb login <h40>
WANDB_API_KEY=<h40>
wandb.login(key="<h40>")
wandb: paste an API key from your profile and hit enter: <h40>
wandb_v1_<u77>
e2b_<h40>
ak-<a22> as-<a22>
modal token set --token-id ak-<a22> --token-secret as-<a22>
sk-helicone-<w7>-<w7>-<w7>-<w7>
sk-helicone-eu-<w7>-<w7>-<w7>-<w7>
vercel_blob_rw_<a16>_<a30>
npg_<a12>
cfut_<a40><h8>
cfat_<a40><h8>
cfk_<a40><h8>
sbp_<h40>
sb_secret_<u31>
fo1_<u43>
FlyV1 fm2_<b120>
rnd_<a28>
RAILWAY_TOKEN=<h8>-<h4>-4<h3>-a<h3>-<h12>
pscale_tkn_<u43>
dp.pt.<a43>
lin_api_<a40>
ntn_<a46>
figd_<u40>
gsk_<a52>
xai-<a80>
pplx-<a48>
r8_<a37>
tvly-dev-<a32>
tvly-prod-<a32>
fc-<h32>
sk-lf-<h8>-<h4>-4<h3>-a<h3>-<h12>
lsv2_pt_<h32>_<h10>
lsv2_sk_<h32>_<h10>
pcsk_<u70>
re_<a8>_<a24>
PMAK-<h24>-<h34>
sntrys_<b90>
glsa_<a32>_<h8>
dapi<h32>
dapi<h32>-2
dt0c01.<U24>.<U64>
shpat_<h32>
shppa_<h32>
EAAA<u60>
sq0atp-<u22>
sq0csp-<u43>
sk.eyJ1IjoiYSIsImEiOiJi<a40>.<u22>
ATATT3xFfGF0<u176>=<U8>
ATBB<a32>
ATTA<h64>
<a14>.atlasv1.<u67>
AKCp<a69>
npm_<a36>
pypi-AgEIcHlwaS5vcmc<u80>
dckr_pat_<u27>
tskey-auth-k<a11>CNTRL-<a32>
ngrok config add-authtoken 2<a26>_<a21>
ngrok authtoken 2<a26>_<a21>
sk-or-v1-<h64>
sk-proj-<u120>
sk-svcacct-<u120>
sk-ant-oat01-<u90>
sk-<h32>
bb_live_<u36>
pylf_v1_us_<a43>
m0-<a40>
crsr_<h64>
signkey-prod-<h64>
tr_prod_<a20>
tr_dev_<a20>
secret-live-<u35>=
xaat-<h8>-<h4>-4<h3>-a<h3>-<h12>
xapt-<h8>-<h4>-4<h3>-a<h3>-<h12>
hbp_<a36>
snyk_uat.<h8>.<u80>
sktsec_<u40>_api
depot_org_<a40>
AVNS_<u19>
xau_<a43>
dbtc_<u42>
dbtu_<u42>
pnb_<a36>
phs_<a43>
phx_<a43>
api-<h8>-<h4>-4<h3>-a<h3>-<h12>
bxt_<a40>
pk_88123456_<U32>
nbp_<a36>
dG9rOj<a54>=
nsec1<w58>
glrt-<u20>
gldt-<u20>
ghr_<a76>
github_pat_<a22>_<a59>
ops_eyJ<a250>
0.<h8>-<h4>-4<h3>-a<h3>-<h12>.<a30>:<b22>==
PrivateKey = <b43>=
PresharedKey = <b43>=
sk_live_<a99>
rk_test_<a99>
whsec_<b32>
SG.<u22>.<u43>
xoxe-1-<a146>
xapp-1-A0<U9>-<w13>-<h64>
key-<h32>
AGE-SECRET-KEY-1<U58>
secret_<a43>
hvs.<u90>
hvb.<u130>
nvapi-<u64>
jina_<a60>
fw_<a24>
csk-<w48>
tgp_v1_<u43>
pa-<u43>
AKIA<U16>
AIzaSy<u33>
ya29.a0<u160>
1//0<u60>
GOCSPX-<u28>
do_v1_ dop_v1_<h64>
SWMTKN-1-<w50>-<w25>
CCIPAT_<a22>_<h40>
bkua_<h40>
sqp_<h40>
oy2<w43>
rubygems_<h48>
apify_api_<a36>
os_v2_app_<w103>
polar_oat_<a43>
xkeysib-<h64>-<a16>
patA1b2C3d4E5f6G7.<h64>
nfp_<a36>
NRAK-<U27>
sgp_<h16>_<h40>
PINECONE_API_KEY=<h8>-<h4>-4<h3>-a<h3>-<h12>
MISTRAL_API_KEY=<a32>
COHERE_API_KEY=<a40>
DEEPGRAM_API_KEY=<h40>
EXA_API_KEY=<h8>-<h4>-4<h3>-a<h3>-<h12>
UPSTASH_REDIS_REST_TOKEN=AX<a54>==
"""

# @ stands for one of these, as people make them of words, digits and signs; %at% for an at sign itself.
_PASSWORDS = (
    "hunter2-Blue!",
    "Tr0ub4dor&3x",
    "Sommer2024!",
    "kX9#mQ2vLp7w",
    "correct-Horse-42",
    "p4ssW0rd!Real",
)
GIVEN = """
the password is @
The password is @.
the password is: @
my password is "@", please do not write it down
password for the wiki is @
the admin password should be @
the new password is @ (changed today)
set the password to @ for staging
change the password to @
log in with ana and the password @
use @ as the password
the db password was @ until yesterday
password: @
Password = @
pw: @
pwd: @
passwd is @
passphrase is @
login: ana / @
creds: ana:@
credentials: ana / @
user ana, password @
username: ana password: @
ssh ana%at%host with password @
sudo password is @
root password: @
Wifi password: @
PIN for the vault: 739204
The PIN is 739204
the door code is 739204#
Das Passwort lautet @
Das Passwort ist @
Passwort: @
Kennwort für den Server: @
Mein Kennwort ist @
das passwort für die datenbank ist @
Die PIN lautet 739204
La contraseña es @
La contraseña del servidor es @
Contraseña: @
la clave es @
Le mot de passe est @
Mot de passe : @
Le mot de passe de la base est @
Le mot de passe de la base de tests c'est @
La password è @
La parola d'ordine è @
A senha é @
Senha: @
Het wachtwoord is @
Hasło to @
Lösenordet är @
Пароль: @
пароль от базы @
Пароль — @
パスワードは@です
パスワード：@
パスワードは「@」です
密码是@
密码：@
数据库密码是 @
비밀번호는 @ 입니다
https://api.internal/login?user=ana&password=@
https://api.internal/v1?access_token=<a32>&page=2
https://api.internal/v1?apikey=<a32>
https://api.internal/v1?auth=<a32>
https://api.internal/v1?secret=<a32>
wss://stream.internal/?token=<a32>
https://ana:@%at%git.internal/a.git
postgres://app:@%at%db.internal:5432/app
amqp://app:@%at%mq.internal:5672/
curl -u ana:@ https://api.internal/
curl --user 'ana:@' https://api.internal/
curl -H "X-Api-Key: <a32>" https://api.internal/
curl -H 'Authorization: Bearer <a40>' https://api.internal/
mysql -u root -p@ app
mysqldump -u root -p'@' app > a.sql
mysql --password=@ app
PGPASSWORD=@ psql -h db app
MYSQL_PWD=@ mysql app
REDISCLI_AUTH=@ redis-cli
export DB_PASS='@'
docker run -e POSTGRES_PASSWORD=@ postgres
docker run --env MYSQL_ROOT_PASSWORD=@ mysql
environment:\\n  - POSTGRES_PASSWORD=@\\n
environment:\\n  POSTGRES_PASSWORD: @\\n
sshpass -p @ ssh ana%at%host
{"password": "@"}
{"user": "ana", "pwd": "@"}
{"db": {"pass": "@"}}
{"clientSecret": "<a40>"}
password: "@"
db_password = "@"
[db]\\npassword = '@'
<password>@</password>
X-Api-Key: <a32>
X-Auth-Token: <a32>
x-access-token: <a32>
Api-Key: <a32>
Ocp-Apim-Subscription-Key: <h32>
X-Goog-Api-Key: <a39>
PRIVATE-TOKEN: <a20>
X-Vault-Token: <a24>
Authorization: Basic <a40>==
Authorization: Digest username="ana", response="<h32>"
Proxy-Authorization: Basic <a40>==
Cookie: session=<a40>; theme=dark
Set-Cookie: sid=<a40>; HttpOnly; Path=/
Cookie: sessionid=<w32>
redis-cli -a @ ping
net use Z: \\\\\\\\host\\\\share /user:ana @
net use Z: \\\\\\\\host\\\\share @ /user:ana
Login    ana\\nPass     @\\n
wget --password=@ https://a.internal/f
wget --http-password=@ https://a.internal/f
openssl enc -aes-256-cbc -pass pass:@ -in a
git clone https://<a40>%at%git.internal/a.git
ansible-playbook a.yml -e "ansible_password=@"
vault kv put secret/db password=@
kubectl create secret generic db --from-literal=password=@
echo @ | docker login -u ana --password-stdin
ALTER USER app WITH PASSWORD '@';
CREATE USER app IDENTIFIED BY '@';
const password = '@';
String password = "@";
password := "@"
$password = '@';
"--password", "@"
%at%word is not it; the password is\\n@
Password:\\n@
token:\\n  <a40>
gh\u200bp_<a36>
pass\u200bword: @
INTERNAL_HANDSHAKE=<a22>
curl -H "X-Acme-Auth: <a28>" https://api.internal/v2
curl -d 'user=bob&pass=<a24>&remember=1' https://api.internal/login
{"env": [{"value": "<a32>", "name": "API_TOKEN"}]}
{"name": "API_TOKEN", "type": "text", "value": "<a32>"}
GET /v1/maps?key=<a32>&q=a 200
my seed phrase is gravity sunset tomato ladder oxygen velvet marble canyon whisper puzzle lantern \
orbit keep it
seed phrase:\\n1. gravity\\n2. sunset\\n3. tomato\\n4. ladder\\n5. oxygen\\n6. velvet\\n7. \
marble\\n8. canyon\\n9. whisper\\n10. puzzle\\n11. lantern\\n12. orbit
smtp:\\n  password: |\\n    @\\n  port: 587
api_key: >-\\n  <a18>\\n
[database]\\npasswd = '''@'''
<add key="SmtpPassword" value="@"/>
variable "db_password" {\\n  type = string\\n  default = "@"\\n}
sudo -S -k ls <<< '@'
printf '%s' '@' > ~/.vault_pass
vault kv put secret/app user=ana db=<a18>
aws secretsmanager put-secret-value --secret-id a --secret-string '@'
az keyvault secret set --vault-name a --name b --value @
net user ana @ /add
log in as admin with kX9#mQ2vLp7w on the staging box
| user | password |\\n|---|---|\\n| ana | @ |\\n| bob | <a12>9 |
user,email,password,token\\nana,a%at%internal.test,<a12>9,<a32>\\nbob,b%at%internal.test,<a14>9,<a30>
Credentials(user='a', secret=SecretBytes(b'<a32>'))
const token = '<a10>' + '<a10>';
$ base64 < key.pem\\nLS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk<b38>\\n<b76>\\n<b75>=
database:\\n  passwd: |-\\n    <a16>\\n  name: shop\\n
auth:\\n  clientSecret: >\\n    <a30>\\n
secret_key: |\\n\\n    <a40>\\n
token = \"\"\"<a32>\"\"\"
admin_password = '''\\n<a14>'''
<setting name="ApiToken" serializeAs="String"><value><a28></value></setting>
<property name="hibernate.connection.password" value="<a16>" />
<Parameter Name="DbPwd" Type="xs:string" Value="<a15>"/>
variable "github_token" {\\n  description = "Token for CI"\\n  type        = string\\n  sensitive   \
= true\\n  default     = "<a36>"\\n}
output "x" {}\\nvariable "redis_auth_token" {\\n  default = "<a30>"\\n}
- value: <a24>\\n  name: SESSION_SECRET\\n
{"Value":"<a26>","Type":"PLAINTEXT","Name":"JWT_SECRET"}
curl --data-raw 'login=ana&pw=<a16>' https://a.internal/s
curl -F 'username=bob' -F 'pass=<a16>' https://a.internal/s
POST /login HTTP/1.1\\nContent-Length: 40\\n\\nemail=ana&pass=<a18>
fetch(u, {headers: {'X-Shop-Auth': '<a32>'}})
X-Internal-Session: <a40>
GET /geocode/json?address=x&key=<a39>
password=SecretStr('<a14>')
api_key = SecretString("<a30>")
username;password;role\\nana;<a13>;admin\\nbob;<a13>;user
host\\tlogin\\tpassword\\ndb1\\tana\\t<a14>
| Service | Login | Passwort |\\n|:--|:--|:--|\\n| Wiki | ana | `<a13>` |
| env | url | api token |\\n|---|---|---|\\n| prod | a.internal | <a32> |
recovery phrase: gravity, sunset, tomato, ladder, oxygen, velvet, marble, canyon, whisper, puzzle, \
lantern, orbit
Here is my wallet mnemonic = "gravity sunset tomato ladder oxygen velvet marble canyon whisper \
puzzle lantern orbit"
the 12 words of my wallet: gravity sunset tomato ladder oxygen velvet marble canyon whisper puzzle \
lantern orbit
String apiKey = "<a16>"\\n    + "<a16>";
password = "<a8>" . "<a8>";
aws secretsmanager create-secret --name db --secret-string "<a20>"
aws ssm put-parameter --name /db/pw --type SecureString --value '<a18>'
vault kv patch -mount=secret app pw=<a18>
su - deploy <<< "<a14>"
cryptsetup luksOpen /dev/sda2 crypt <<< '<a20>'
net user deploy "<a14>" /add /domain
echo '<a24>' > /etc/app/db_password
echo "<a32>" | tee ~/.config/api.token
sign in as root using <a14> please
logged in with ana / <a14>
MESSAGE_BUS_CONTEXT=<a28>
export LEDGER_SIG='<a40>'
cat key.b64\\nLS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZLS0tLS0K<b28>\\n<b76>\\n<b76>\\n<b20>==
$ rclone config create box webdav url https://dav.example.org user ada pass @
$ xfreerdp /v:10.0.0.8 /u:ada /p:@ /cert:ignore
$ impacket-secretsdump corp/ada:@%at%10.0.0.5
$ impdp system/@ directory=dp dumpfile=x.dmp
$ ipmitool -I lanplus -H 10.0.0.9 -U ADMIN -P @ chassis status
$ ncftpput -u ada -p @ ftp.example.org / a.txt
$ printf '@' | gpg --batch --passphrase-fd 0 -d a.gpg
$ echo -n "@" | base64 | kubectl create secret generic db --from-file=password=/dev/stdin
$ az sql server create -n s -g g -u ada -p @
$ doctl auth init -t <h40>
$ twine upload -u __token__ -p <a32> dist/*
$ cargo login <a32>
$ gem push x.gem --key <h40>
$ dotnet nuget push a.nupkg -k <a32> -s https://nuget.example.org
$ pulumi config set --secret dbPassword @
$ xdotool type '@' && xdotool key Return  # types the login password
$ wg set wg0 peer X preshared-key <(echo <b43>=)
$ cloudflared service install <b86>==
$ ffmpeg -i in -f flv rtmp://live.example.tv/app/live_<a32>
$ jarsigner -storepass @ -keypass @ app.jar alias
$ signtool sign /f cert.pfx /p @ app.exe
$ security unlock-keychain -p @ login.keychain
$ security find-generic-password -w -s app\\n@
$ pass show mail/ada\\n@
$ aws sts get-session-token --query Credentials.SecretAccessKey --output text\\n<a32>
$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\\n@
$ vault kv get -field=password kv/db\\n@
$ openssl rand -hex 32\\n<h40>
$ cat /run/secrets/db_password\\n@
$ cat .vault_pass\\n@
$ bitcoin-cli dumpprivkey bc1q\\nK<a32><a20>
bind_pw @
bindDN cn=x\\nbindpw @
ldap_default_authtok = @
rootpw @
[smtp.example.org]:587 ada%at%example.org:@
ada:@:1001:1001::/home/ada:/bin/bash
wpa-psk @
<property name="hibernate.connection.password">@</property>
<machineKey validationKey="<h40>" decryptionKey="<h40>" validation="SHA1" />
<string name="google_maps_key"><a32></string>
"httpBasic": ["ada", "@"]
"jwtSecret": "@",
- {key: licence_key, val: <a32>}
auth_pass @
password 8 @
set system login user ada authentication plain-text-password-value "@"
snmp-server community @ RW
neighbor 10.0.0.2 password @
tacacs-server key @
pre-shared-key address 0.0.0.0 key @
ada%at%vpn : EAP "@"
: PSK "@"
require-secret: @
dsn: "ada:@%at%tcp(127.0.0.1:3306)/app?parseTime=true"
https://hooks.example.org/services/T0/B0/<a32>
https://example.org/cb?code=<a32>&state=xyz&client_secret=<a32>
myapp://login?session=<a32>
2026-11-28 10:00:01 INFO  Created service account ada with password '@'
2026-11-28 10:00:01 WARN  login failed for ada using password @
time=10:00 secret_id=<a32> role_id=abc
Nov 28 10:00:01 host app[12]: auth: user=ada pass=@ ok
{"msg":"rotated key","old_key":"<a32>","new_key":"<a32>"}
Generated admin credentials: admin / @
The API key for this workspace is <a32>. Store it safely.
Use this key to sign in (it will not be shown again):\\n\\n    <a32>
PASSWORD elastic = @
let apiKey = #"<a32>"#
var dbPassword = []byte("@")
const PASSWORD: &str = r#"@"#;
const char *wifi_pass = "@";
#define MQTT_PASSWORD "@"
password = q{@};
define('AUTH_SALT', '@<a32>');
new Client({ auth: [ 'ada', '@' ] })
smtp.login("ada%at%example.org", "@")
client = Client(account_sid, "<h40>")  # twilio auth token
password: str = Field(default="@")
parser.add_argument("--password", default="@")
Fernet(b"<b43>=")
hmac.new(b"@", msg, "sha256")
jwt.encode(claims, "@", algorithm="HS256")
jwt.sign(payload, '@', { expiresIn: '1h' })
DriverManager.getConnection(url, "ada", "@");
builder.Configuration["Jwt:Key"] = "@";
options.addArguments("--proxy-auth=ada:@");
Sys.setenv(GITHUB_PAT = "<a32>")
ENV.fetch("SECRET") { "<a32>" }
Rails.application.credentials.secret = %q(<a32>)
(setq smtpmail-password "@")
Dim pwd As String = "@"
set_password -user ada "@"
INSERT INTO users (name, password) VALUES ('ada', '@');
CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET '<a32>');
export DB_PW="${DB_PW:-@}"
PASS=$'@'
read -r TOKEN <<EOF\\n<a32>\\nEOF
sonar.login=<h40>
login with ada and @ as password
My password's @, change it later.
ada's pw → @
username: ada, pass phrase: "harbour lantern gravel cobalt"
proxy = ada:<a20>%at%proxy.example.org
cy.get('#password').type('<a14>')
driver.find_element(By.ID, "password").send_keys("<a14>")
the staging login is ada / <a14>
[INFO] rotated api key from <a32> to <a32>
rar a -hp@ backup.rar dump.sql
cmdkey /add:srv /user:ada /pass:<a14>
http_auth = ada,<a14>
"""

# Secrets between ⟦ and ⟧ in the places made for them, of which none is missed.
IN_PLACE = """
mysql --password  ⟦S3cr3t!pass⟧
tool --token   ⟦550e8400-e29b-41d4-a716-446655440000⟧
tool --api-key  ⟦kT7$wq2Lm⟧ go
zip -P ⟦tN9ugkZeESG61she/QAqq0nv==⟧ a.zip
unzip -P '⟦xK9-_.mN2p⟧' a.zip
zip -P ⟦icecream⟧ a.zip
7z a -p⟦p%at%ss/w0rd=⟧ x.7z
7z a -p⟦xK9-_.mN2p⟧ x.7z
7za a -hp⟦S3cr3t!pass⟧ x.7z
localhost:9999:db:alice:⟦S3cr3t!pass⟧
localhost:6543:db:alice:⟦qwerty12⟧
db:25060:app:root:⟦blue-Monday-42⟧
PASSWORD_STORE=⟦hunter2⟧
PASSWORD_STORE=⟦S3cr3t!pass⟧
AUTH_TOKEN_PROVIDER=⟦8b0e7153bf7c3706d85c524e440066559a6656c90bd5482a90a29b9fa5ff5180⟧
SECRET_MANAGER=⟦kT7$wq2Lm⟧
secret_command: ⟦P4ssw0rd-2024-xY⟧
secret_ttl=⟦550e8400-e29b-41d4-a716-446655440000⟧
password_enabled=⟦qwerty12⟧
I changed the root password to ⟦velociraptor⟧ this morning
das Passwort wurde auf ⟦Sommerwiese⟧ geändert
reset the password to ⟦Sommer7⟧ and log in
pw = ⟦Papillon75⟧
pw: "⟦sunflower⟧"
pw for the wiki: ⟦sunflower⟧
smtp_pass: ⟦sunflower⟧
pwd    ⟦S3cr3t!pass⟧
password -> ⟦S3cr3t!pass⟧
user=ada pass=⟦cardamom⟧ host=db
user = bot\\npass = ⟦quietstorm⟧
login: ada and ⟦marigold99⟧
login: ada / ⟦marigold⟧
OTP: ⟦202 411⟧
auth code: ⟦48213 99210⟧
"""

# Passwords of plain words, PINs and codes between ⟦ and ⟧, written before the rules that find them.
IN_WORDS = """
hey the staging box is ubuntu / ⟦tangerine dream⟧, log in and look at syslog
the wifi password here is ⟦blue kettle seven⟧ btw, so the pi can connect
pw for the demo account: ⟦sunflower⟧
$ sudo -S apt update <<< ⟦mybirthday1990⟧
Enter passphrase for key '/home/dev/.ssh/id_ed25519': ⟦the quick brown badger⟧\\nIdentity added: \
/home/dev/.ssh/id_ed25519
mysql> ALTER USER 'app'%at%'%' IDENTIFIED WITH caching_sha2_password BY '⟦rosebud⟧';\\nQuery OK, 0 \
rows affected (0.01 sec)
postgres=# CREATE ROLE reporting LOGIN PASSWORD '⟦winter is coming⟧';\\nCREATE ROLE
INSERT INTO users (name, email, password) VALUES ('ada', 'ada%at%corp.test', '⟦letmein!⟧');
UPDATE accounts SET pin = '⟦4821⟧' WHERE id = 17;
The PIN of the door next to the server room is ⟦7730⟧#.
my 2fa backup codes are ⟦8f3k-22lm⟧, please keep them out of the repo
Recovery codes:\\n  1. ⟦48213 99210⟧\\nKeep these somewhere safe.
use admin/⟦admin123!⟧ to get into grafana
login: operator\\nPassword: ⟦falcon heavy⟧\\nLast login: Tue Mar  4 09:12:51 from 10.0.0.4
curl -s -u jenkins:⟦buildsrus⟧ https://ci.corp.test/job/app/build
curl -H 'X-Api-Key: ⟦pelican-brief-94⟧' https://api.corp.test/v1/items
curl -b "session=⟦s%3AzKq81mVtY.9LmQ2p7Wx⟧" https://app.corp.test/me
Set-Cookie: sid=⟦f9d1c0a772be4e18⟧; Path=/; HttpOnly
wget --http-user=ftpbot --http-password=⟦greenhouse⟧ https://files.corp.test/dump.tar
sshpass -p ⟦orangejuice⟧ ssh root%at%10.1.2.3
mysqldump -u root -p⟦toor123⟧ shop > shop.sql
PGPASSWORD=⟦marmalade⟧ psql -h db -U app
redis-cli -a ⟦cachemoney⟧ ping
mongodb://svc:⟦pineapple⟧%at%mongo.corp.test:27017/app?authSource=admin
jdbc:oracle:thin:scott/⟦tiger99⟧%at%//db.corp.test:1521/ORCL
Server=tcp:sql.corp.test,1433;Database=app;User ID=app;Password=⟦Blue;Sky⟧
amqp://guest:⟦rabbit-hole⟧%at%mq.corp.test/
database:\\n  host: db.corp.test\\n  user: app\\n  password: ⟦strawberry fields⟧
smtp:\\n  username: noreply%at%corp.test\\n  password: >-\\n    ⟦lavender haze in june⟧\\n  port: 587
auth:\\n  basic:\\n    - ada:⟦lighthouse7⟧
[mail]\\nuser = bot\\npass = ⟦quietstorm⟧
machine api.corp.test login ci password ⟦wonderwall⟧
db.corp.test:5432:app:app:⟦peppermint⟧
spring.datasource.password=⟦cinnamon⟧
export MAIL_PASS="⟦walnut tree⟧"
DB_PASSWORD='⟦two words⟧'
config = {"user": "root", "password": "⟦open sesame⟧", "timeout": 30}
User(name='ada', password='⟦butterscotch⟧', is_admin=True)
>>> os.environ["SMTP_PASS"]\\n'⟦gingerbread⟧'
>>> getpass.getpass()\\nPassword:\\n'⟦moonraker⟧'
conn = psycopg2.connect("dbname=app user=app password=⟦harvestmoon⟧ host=db")
conn = pymysql.connect(host="db", user="root", passwd="⟦seashell⟧", db="shop")
const client = new Client({ user: 'app', host: 'db', password: '⟦maplesyrup⟧' })
await page.fill('#password', '⟦Tr0ub4dor⟧');
await page.type('input[name=password]', '⟦velvet underground⟧')
cy.get('[name=pwd]').type('⟦honeycomb42⟧')
driver.find_element(By.ID, "password").send_keys("⟦raspberry⟧")
http POST :8000/login username=ada password=⟦thunderbolt⟧
POST /login HTTP/1.1\\nContent-Type: \
application/x-www-form-urlencoded\\n\\nusername=ada&password=⟦silver+bullet⟧&remember=1
{"username": "ada", "pwd": "⟦daffodil⟧"}
<add key="SmtpPassword" value="⟦snowdrop⟧" />
<user username="tomcat" password="⟦bluebird⟧" roles="manager-gui"/>
htpasswd -b .htpasswd ada ⟦cloudberry⟧
echo "ada:⟦nightingale⟧" | sudo chpasswd
openssl enc -aes-256-cbc -in x -out y -k ⟦bananabread⟧
openssl pkcs12 -export -in c.pem -out c.p12 -passout pass:⟦dragonfly⟧
zip -P ⟦icecream⟧ backup.zip dump.sql
7z x archive.7z -p⟦kingfisher⟧
keytool -genkey -storepass ⟦changeit2024⟧ -alias app
ansible-playbook site.yml -e ansible_become_pass=⟦redwood⟧
net use Z: \\\\nas\\share ⟦hedgehog⟧ /user:corp\\ada
| user  | password      | role  |\\n|-------|---------------|-------|\\n| ada   | ⟦springtime⟧    | admin |
name,login,password\\nAda,ada,⟦goldfinch⟧
Username   Password\\n--------   --------\\nada        ⟦blackbird⟧
user: ada\\npw: ⟦hunter2summer⟧
creds are ada and ⟦marigold99⟧
credentials: ada / ⟦hummingbird⟧
you can log in with ada%at%corp.test and ⟦password1234⟧
I changed the root password to ⟦velociraptor⟧ this morning
set the admin password to "⟦purple rain⟧" and restart
the old password was ⟦summer2019⟧, new one is the same with 2020
password's ⟦monkey business⟧
passwd = ⟦tulip⟧
The vault master password: ⟦every good boy deserves fudge⟧
just type ⟦swordfish⟧ when it asks for the password
When prompted for a password enter ⟦cucumber⟧
it asked for my PIN so I gave it ⟦9051⟧
my apple id code is ⟦119482⟧, enter it quickly
the otp secret is ⟦JBSWY3DPEHPK3PXP⟧
otpauth://totp/Corp:ada?secret=⟦KRSXG5CTMVRXEZLU⟧&issuer=Corp
seed phrase: ⟦abandon lunar crisp velvet ocean tiger maple ribbon fossil hazard jungle wagon⟧
SSN on the test account is real: ⟦078-05-1120⟧
card 4929 1234 5678 9012 cvv ⟦737⟧
the api key we use for maps is ⟦b7c1e0f2a9d84c33⟧
here's my token ⟦k3J9pLq2Zx8vTn5R⟧ can you test the endpoint
bearer ⟦9d8f7a6b5c4e3d2f1a0b⟧
Authorization: Basic ⟦YWRhOmxpZ2h0aG91c2U=⟧
https://app.corp.test/reset?token=⟦a81Kd02lqPz7⟧
https://ada:⟦wildflower⟧%at%git.corp.test/app.git
git clone https://oauth2:⟦tok-9x2l4m6n8p⟧%at%git.corp.test/app
https://hooks.corp.test/in/⟦T0Q9ZPL3/B88XYZ12/pQ4rS7tU9wX2⟧
TICKET-482: customer cannot log in. Tried with their password (⟦Fluffy2011⟧) and got 403.
> what's the sudo pw?\\n⟦bumblebee⟧
Ada: what is the db password again?\\nBen: ⟦chocolate teapot⟧
snmp-server community ⟦corpread⟧ RO
enable secret 0 ⟦routermaster⟧
wpa_passphrase homenet ⟦greenlantern⟧
network={\\n  ssid="homenet"\\n  psk="⟦tiger lily pond⟧"\\n}
const char* WIFI_PASS = "⟦sugarcane⟧";
#define WIFI_PASSWORD "⟦coffee beans⟧"
Das Passwort für den Testserver ist ⟦Sommerwiese⟧.
Kennwort: ⟦Apfelkuchen⟧
Zugangsdaten: Benutzer admin, Passwort ⟦geheim123⟧
die PIN für die Tür lautet ⟦4471⟧
melde dich mit admin / ⟦Sonnenblume⟧ an
Das WLAN-Passwort lautet "⟦vier alte Hasen⟧", bitte im Skript eintragen
hab das Root-Passwort auf ⟦Donnerstag7⟧ geändert
Le mot de passe de la base est ⟦tournesol⟧
mdp : ⟦Papillon75⟧
connecte-toi avec admin et le mot de passe ⟦fromage blanc⟧
le code PIN est ⟦2580⟧
the pin for the label printer's admin menu is ⟦739204⟧, put it into the script
identifiant: ada, mot de passe: ⟦coccinelle⟧
j'ai mis le mot de passe à ⟦marseille13⟧
La contraseña del servidor es ⟦girasol⟧
clave: ⟦mariposa22⟧
usuario admin, contraseña ⟦perro verde⟧
entra con ada y la clave ⟦sandía⟧
el PIN de la tarjeta es ⟦6604⟧
cambia la contraseña a ⟦invierno2023⟧ por favor
{"contraseña": "⟦luciérnaga⟧"}
"""

STAYS = """
commit <h40>
git show <h7>
Merge <h7> into <h7>
index <h7>..<h7> 100644
HEAD is now at <h9> Add the reader
revert <h40> and push
sha256:<h64>
sha256 = "<h64>"
"digest": "sha256:<h64>"
md5 <h32>  a.tar.gz
<h64>  dist/cortex.whl
etag: "<h32>"
ETag: W/"<h16>"
integrity sha512-<b86>==
"resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz#<h40>"
id <h8>-<h4>-4<h3>-a<h3>-<h12>
uuid: <h8>-<h4>-4<h3>-a<h3>-<h12>
session_id=<h8>-<h4>-4<h3>-a<h3>-<h12>
"requestId": "<h8>-<h4>-4<h3>-a<h3>-<h12>"
trace_id=<h32> span_id=<h16>
traceparent: 00-<h32>-<h16>-01
msg_01<a22>
toolu_01<a22>
req_011<a21>
chatcmpl-<a29>
run_<a24>
price_1<a23>
cus_<a14>
pk_live_<a24>
pk_test_<a24>
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA<b44>
src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
node_modules/.pnpm/a@1.0.0_<h32>/node_modules
dist/assets/index-<a8>.js
main.<h20>.chunk.js
/nix/store/<w32>-python3-3.11.9
docker.io/library/postgres@sha256:<h64>
container <h12> exited with 137
arn:aws:iam::123456789012:role/deploy-production-2024
projects/12/locations/eu/keyRings/a/cryptoKeys/b
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<b43> ana@host
SHA256:<b43> ana@host (ED25519)
0x<h40>
block 0x<h64>
v=spf1 include:_spf.google.com ~all
google-site-verification=<u43>
<YOUR_TOKEN>
token: <YOUR_TOKEN>
TOKEN=$TOKEN
password: $PASSWORD
password=${DB_PASSWORD}
DB_PASSWORD=$(cat /run/secrets/db)
API_KEY=your-api-key-here
OPENAI_API_KEY=sk-...
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
WANDB_API_KEY=<your key>
wandb login
wandb: Run data is saved locally in wandb/run-20261128_044001-<w8>
wandb sync wandb/run-20261128_044001-<w8>
E2B_API_KEY=e2b_...
e2b_template_name_of_the_sandbox
modal deploy as-a-service-of-the-whole-team
ak-zone-of-the-archive as-of-2024-01-01-and-later
npg_dump_of_the_store
cfk_settings and cfat_table_of_contents
vercel_blob_rw_your_token_here
sk-helicone-your-key-here
api_org_settings_of_the_members
AQ.questions and AQ.answers
m0-model-with-the-longest-name-of-all-2024
api-gateway-with-the-longest-name-of-all
tr_production_of_the_table
secret-live-reload-of-the-whole-page
phs_of_the_moon_and_of_the_sun
dbtc_model_of_the_orders_table
xau_gold_price_of_the_last_thirty_days
depot_organisation_settings
password: xxxx
password: ****
password: changeme
password: "<password>"
password = input("Password: ")
password = getpass.getpass()
password = os.environ["PASSWORD"]
passwordHash = await bcrypt.hash(password, 10)
const { password } = req.body;
if (!password) throw new Error("Password is required");
The password is required.
The password is wrong.
the password is stored as a hash
the password is at least 12 characters long
the password is never logged
the password is empty in development
the password is in 1Password
the password is the same as last year
the password is in the file .env.local
the password is rotated every 90 days
The password is case-sensitive
The password is read from the environment
the password is hashed with scrypt
the password is checked in auth/login.py
the password is too short, use 12 or more
the password reset link is broken
we need a password field here
change the password to something better
change the password to a longer one
set the password to null
set the password to empty and test
what is the password policy?
Forgot password? Click here
Add a "Show password" checkbox
add password validation to the sign-up form
Fix password reset e-mail (#1234)
user ana, password unknown
log in with the password from the vault
log in with the password manager
use the keychain as the password store
use SSH-keys as the password replacement
password-protected ZIP files
password strength: weak, medium, strong
PIN for the vault: ask Ana
The PIN is asked for at the door
pin the version to 3.11.9
PIN 13 of the GPIO header is 5V tolerant
pin 739204 commits behind
the PIN code has four digits
the door code is in the handbook
the error code is 739204
status code is 404
the country code is 739204
zip code: 73920
Das Passwort ist zu kurz
Das Passwort lautet wie immer
Das Passwort muss mindestens 12 Zeichen haben
Das Passwort wird in Zeile 204 geprüft
Kennwort vergessen? Hier klicken
La contraseña es obligatoria
La contraseña es incorrecta
la clave es entender el problema
pin 4 of the header is 3300 mV
la clave es el campo order_id2
Le mot de passe est obligatoire
Le mot de passe est haché avec bcrypt2
A senha é obrigatória
Пароль должен быть длиннее
пароль обязателен
Пароль — обязательное поле
パスワードは必須です
パスワードは8文字以上です
パスワードを忘れた場合
密码是必填项
密码不能为空
密码长度至少8位
비밀번호는 필수입니다
https://api.internal/v1?page=2&sort=created_at&token_type=bearer
https://a.internal/?utm_campaign=summer-2024-newsletter-final
https://youtu.be/<a11>?t=42
https://docs.google.com/document/d/1<a43>/edit
https://github.com/a/b/commit/<h40>
https://github.com/a/b/blob/<h40>/src/auth/password.py#L12
curl -u $USER:$PASS https://api.internal/
curl -X POST https://api.internal/v1/tokens
mysql -u root -p app
mysql -u root -p < schema.sql
PGPASSWORD=$PGPASSWORD psql
docker compose up -d --build
POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?missing}
Authorization: Bearer $TOKEN
Authorization: Bearer ${process.env.API_TOKEN}
X-Api-Key: {{api_key}}
"X-Api-Key": settings.api_key,
Cookie: theme=dark; lang=en
input_tokens: 18234, output_tokens: 912
max_tokens=4096
tokenizer: cl100k_base
token = next(tokens)
tokens = text.split()
csrf_token = forms.CharField()
{% csrf_token %}
key = "created_at"
primary_key=True
foreign key (user_id) references users (id)
api_key: Optional[str] = None
secret santa list
the secret is to start early
secretKeyRef:\\n  name: db-credentials\\n  key: password
type: kubernetes.io/service-account-token
Keyboard shortcut: Ctrl+Shift+P
PrivateKey = <private key of the server>
PublicKey = <b43>=
AllowedIPs = 10.0.0.2/32
tests/unit/test_password_reset.py::test_token_expires PASSED
2026-11-28T04:40:01Z INFO auth: token refreshed for user 18234
Traceback: KeyError: 'password'
password: |\\n  Shown below the field when empty\\n
description: the syntax is `password: |` and then the value on the next line
password: |\\n  {{ vault_db_password }}\\n
api_key: >-\\n  ${API_KEY}\\n
api_key: >-\\n  the key that the service gives you\\n
token: |\\n  see docs/authentication.md\\n
password: |\\n  !vault\\n
variable "db_password" {\\n  type = string\\n  default = ""\\n}
variable "region" {\\n  type = string\\n  default = "eu-west-1"\\n}
variable "token_ttl" {\\n  type = string\\n  default = "3600"\\n}
variable "key_name" {\\n  description = "EC2 key pair"\\n  default = "deployer-key-2024"\\n}
variable "db_password" {\\n  type = string\\n  sensitive = true\\n}\\nvariable "instance_type" {\\n \
 default = "t3.micro2024a"\\n}
{"value": "2024-11-01T10:00:00Z", "name": "created_at"}
{"value": "eu-central-1", "name": "AWS_REGION"}
{"value": "true", "name": "USE_TOKEN"}
{"value": 4096, "name": "MAX_TOKENS"}
[{"value":"v1.28.3","name":"version"},{"name":"API_TOKEN","valueFrom":{"secretKeyRef":{"name":"api"}}}]
<add key="SmtpPassword" value=""/>
<add key="SmtpHost" value="mail01.internal"/>
<add key="ClientValidationEnabled" value="true"/>
<input name="password" value="" type="password"/>
<option value="token2024" data-key="k12">Token</option>
curl -d 'user=bob&pass=$PASS&remember=1' https://x.internal/login
results: pass=12&fail=0&skip=3
/report?pass=2&fail=0&total=204
GET /items?key=name&order=asc 200
GET /items?key=created_at&dir=desc
/cache?key=user:42:profile
/v1/list?key=price_2024_desc_sorted
https://internal.test/browse?key=PROJ-1234
s3://bucket/list?key=images/2024/11/01/photo_0012.jpg
<Row key={id} value={row.value} />
<li key={`row-${index}`} data-key="section-2024-11">
X-Request-Auth: none
X-Auth-Type: bearer-token-v2
X-Auth-Request-Email: ana2024
X-Forwarded-Proto: https
"x-amz-request-auth-mode": "signature-version-4"
secret=SecretBytes(b'...')
secret = SecretStr(os.environ["APP_SECRET"])
secret = SecretStr(value)
name,email,role\\nana,a2024Xq9Lm,admin\\n
user,password\\n
user,password_changed_at\\nana,2024-11-01T10:00:00Z\\n
id,name,password_hint,city\\n1,ana,dog2024Rex9,Paris\\n
| field | password |\\n|---|---|\\n| required | yes |\\n
| user | password |\\n|---|---|\\n| ana | ******** |\\n
| option | password policy |\\n|---|---|\\n| length | 12 characters |\\n
| method | token |\\n|---|---|\\n| OAuth2 | required |\\n
| Model | tokens |\\n|---|---|\\n| opus-4 | 18234 |\\n
| file | key |\\n|---|---|\\n| a.py | created_at |\\n
The seed phrase is a list of twelve words that you write down and keep in a safe place, away from the machine
a seed phrase never leaves the device and nobody from the support will ever ask you for it, not \
even once a year
the mnemonic for the order of the planets in our solar system helps many children at school to \
remember them all
mnemonic: the shortcut is easier to remember when you think of the word find and then the word all
const token = prefix + 'suffix2024';
const token = 'Bearer ' + accessToken;
const tokenLabel = 'Token' + ' expires in 2024';
const passwordMessage = 'Password must ' + 'have 8 characters';
aws secretsmanager put-secret-value --secret-id a --secret-string file://secret.json
aws secretsmanager create-secret --name a --secret-string "$SECRET"
aws secretsmanager get-secret-value --secret-id prod/app2024/db
vault kv put secret/app db=@db.json
vault kv put secret/app db=$DB
vault kv put -mount=secret app2024 ttl=3600s
vault kv get -field=db secret/app2024
sudo -S ls <<< "$PASSWORD"
cat <<< 'hello World 2024a'
grep foo2024 <<< 'Sommer2024Reise'
net user ana /delete
net user ana * /add
the net user experience of 2024Q3 is better
run net user to list the accounts on Server2022
printf 'hello2024World' > ~/notes.txt
printf '%s' "$VAULT_PASS" > ~/.vault_pass
echo 'set number2024' > ~/.vimrc
echo 'see README2024.md' > docs/passwords.md
log in as admin with the password from 1Password
log in as admin with SSO2024 on staging
log in with GitHub and try again
logged in as ana with role Admin2 on prod
sign in as ana with two-factor codes
handshake=tls13
TLS_HANDSHAKE=TLSv1.3
HANDSHAKE_TIMEOUT=30000ms
BUILD_ID=<h40>
GIT_COMMIT=<h40>
IMAGE_DIGEST=sha256:<h64>
SESSION_NAME=<a8>
TRACE_ID=<h32>
CACHE_BUSTER=v20241101T101500
NEXT_BUILD_HASH=<a20>
WINDOW_CLASS=GtkApplicationWindow3
DEFAULT_MODEL=claude-3-5-sonnet-20241022
RELEASE=2024.11.3-rc1-build7
NODE_OPTIONS=--max-old-space-size=4096
LS_COLORS=rs=0:di=01;34:ln=01;36
TERM_SESSION_ID=w0t0p0:<h8>-<h4>-4<h3>-a<h3>-<h12>
<b76>\\n<b76>\\n<b40>
iVBORw0KGgoAAAANSUhEUgAA<b52>\\n<b76>\\n<b76>\\n<b30>
$ base64 < logo.png\\n<b76>\\n<b76>\\n<b40>
-----BEGIN CERTIFICATE-----\\n<b64>\\n<b64>\\n-----END CERTIFICATE-----
$ base64 < cert.pem\\nLS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk<b38>\\n<b76>\\n<b40>
passwd = ''''''
passwd = '''\\nUsage: prog [options]\\n'''
docker run -u 1000 -p 8080:80/tcp nginx
psql -U ada -p 5432 app2
ssh -l ada -p 2222 host1.example.org
npm publish --access public
git push --set-upstream origin feature/add-login2-flow
cargo publish -p kelp-core2
az login --tenant 72f988bf-86f1-41af-91ab-2d7cd011db47
helm push chart-1.2.3.tgz oci://registry.example.org/charts
gem push kelp-1.2.0-x86_64-linux.gem
echo build42 | tee secret-build.txt
VERSION=$(echo release2024)
All tests pass now\\nv1.2.3-rc1
they pass limit=10 to the call
pass timeout=30s to the client
pass --max-width=80% and go on
CREATE TABLE token_usage (model text); INSERT INTO token_usage VALUES (1, 'gpt-4', 512);
insert into users (name, password) values (?, ?)
INSERT INTO users (name, password) VALUES ($1, $2)
socket.connect("tcp://10.0.0.1", "topic12")
auth: ['jwt', 'oauth2']
credentials = ["email", "phone2fa"]
createHmac('sha256', secret)
hmac.new(key, msg, "sha512")
mailto:support2024@example.org
email:ada1987@example.org
sip:user01@voice.example.org
acct:ada123@mastodon.social
"string-width-cjs": "npm:string-width@4.2.0"
git@github.com:ada/kelp2.git
password: !Ref DbPassword1
password: !secret wifi_password_2g
token: !Sub "${ApiToken2}"
"license": {"key": "apache-2.0", "name": "Apache License 2.0"}
cache key:\\n  node-modules-linux-x64-v3
new_key = "session:v2:ada1"
primary_key=True
validationKey: 'form.email1'
exit code:\\n\\n127
login as: ada2
login failed 3 times
enable password recovery on 2 routers
neighbor 10.0.0.2 remote-as 65001
user ada2 logged in
root:x:0:0:root:/root:/bin/bash
nobody:*:65534:65534:Unprivileged:/var/empty:/usr/bin/false
<input name="password" type="password">
<string name="password_hint">Passwort eingeben</string>
the password's length is at least 12 characters
the password's SHA256 is stored
password → hashed with bcrypt12
   661→properties["token"] = authToken\\n   662→properties["file_content"] = fileData
$ openssl rand -hex 32 > /run/keys/app
$ cat password_policy.md\\nminimum length is 12
$ kubectl get secret db\\nNAME TYPE DATA AGE
https://example.org/webhooks/github
https://hooks.example.org/docs/getting-started2
os.getenv("API_KEY") or ""
os.environ.get("TOKEN", default="")
parser.add_argument("--password", help="asks if missing", default="")
${DB_PASSWORD:-}
${PASS:?is not set}
password: str = Field(default="")
password: str = Field(min_length=12)
let password = String(localized: "login.password.title1")
const secretKey = Buffer.from(process.env.SECRET2, "base64")
token = bytes("", "utf-8")
read -r TOKEN < /run/secrets/token
git log --format=%H -p 2f1c9e4
mysqldump -u root -p app2024
tar -u file -p dir2/sub3
rsync -u ada -p 10.0.0.1::mod
created_at: 2026-11-28T10:00:00Z
token_created_at=1764324000
format: PAT 12 of the survey
commit 3f786850e387550fdab836ed7e6dc881de23001b
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
request id 7b0c9a5e-2f1d-4c83-9a7e-1c2d3e4f5a6b failed
index 83db48f..bf2a1c9 100644
resolved "https://registry.npmjs.org/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c"
def login(user: str, password: str) -> bool:
password: str | None = None
password = Column(String(128), nullable=False)
password = models.CharField(max_length=128)
password = request.form["password"]
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
const password = useRef(null)
const { username, password } = req.body;
let password = event.target.value
if password != confirm_password:
password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt())
hashed = argon2.hash(password)
user.set_password(form.password.data)
assert "password" not in response.json()
raise ValueError("password is required")
"password is too short (minimum is 8 characters)"
The password is stored hashed with bcrypt.
Your password is wrong, try again.
password is required
the password is optional in this endpoint
the password is read from the environment
password is incorrect
Password must contain at least one digit
Password reset email sent
Password authentication failed for user "app"
FATAL:  password authentication failed for user "postgres"
Permission denied (publickey,password).
Access denied for user 'root'%at%'localhost' (using password: YES)
sudo: a password is required
[sudo] password for ada:
Enter passphrase for key '/home/dev/.ssh/id_ed25519':
Enter passphrase (empty for no passphrase):
Password: ********
password: "********"
Password:\\nPassword:\\nsu: Authentication failure
Password for ada%at%corp.test:
New password: \\nRetype new password: \\npasswd: password updated successfully
DB_PASSWORD=changeme
DB_PASSWORD=
DB_PASSWORD=<your password>
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=$(pass show db)
password: ${{ secrets.DB_PASSWORD }}
password: "{{ vault_db_password }}"
password: !vault |
password: {{ .Values.db.password }}
password: ENC[AES256_GCM,data:...]
password_file: /run/secrets/db_password
password-store is empty
passwordHash: true
"password": null
"password": "string"
"password": "<password>"
"password": true,
"format": "password"
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
placeholder="Enter your password"
type: password
- name: password\\n  type: string\\n  required: true
required: [username, password]
username and password are both required
enter your username and password
Please enter a password for the new user
When prompted for a password press enter
use a strong password
I forgot the password
how do I change the password of a postgres user?
we should rotate the password every month
set the password via the UI
set the password in the environment variable DB_PASSWORD
set the password field to required
the password field is missing a label
the password column should be nullable
rename password to secret_hash
change the password to be optional
change password validation to allow spaces
the password prompt hangs on Windows
the password check is flaky
add a test for the wrong password
password reset flow is broken
the password was changed by the admin
the password has expired
passwords are compared in constant time
the password should be at least 12 characters long
the password should be hashed
the password isn't validated
password is not a valid keyword argument
password is undefined
password is None
password is empty
Password is: None
password: required
password: invalid
password: optional
password: hidden
password: string;
password: string
password: text
password: varchar(255)
password: z.string().min(8)
password: Joi.string().required()
password: yes
password: 12 chars min
password: at least 12 characters
password: see 1Password
password: in the vault
password: same as last time
password: ask Ben
password: [redacted]
password: (none)
password: n/a
password: -
pw: see wiki
pwd
pwd: /home/dev/app
$ pwd\\n/home/dev/app
cd $(pwd)/src
OLDPWD=/home/dev
PASS
PASS tests/unit/test_login.py (3 tests)
PASS src/auth/login.test.ts
FAIL: test_password_is_hashed
pass: 12, fail: 0
pass rate: 98%
2 passed, 1 failed
first pass: lexer, second pass: parser
pass the token to the handler
we pass user and host to connect()
all tests pass now
token: Token
token count: 18234
total_tokens: 18234
the token is expired
the token is invalid
the token is a JWT
token refresh is broken
the next token is a string literal
tokens: IDENT, LPAREN, RPAREN
const token = jwt.sign(payload, secret)
const token = localStorage.getItem('token')
token = tokenizer.next()
secret = config.get("secret")
secretRef: { name: db }
secretName: tls-cert
kubectl get secret db -o yaml
the secret is mounted at /run/secrets
the secret to fast tests is fixtures
api_key = os.getenv("API_KEY")
api key is missing
API key: not set
apiKey: string
"apiKey": "YOUR_API_KEY"
x-api-key: <key>
Authorization: Bearer <token>
Authorization: Basic <base64>
curl -u user:password https://example.com
curl -u "$USER:$PASS" https://api.corp.test
postgres://user:password%at%localhost:5432/app
postgres://user:pass%at%host/db
redis://localhost:6379/0
https://user%at%host/path
git%at%github.com:corp/app.git
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3 ada%at%laptop
SHA256:uNiVztksCsDhcc0u9e8BgrJXVGjQ2l1d4vWn7s8Yx3Q ada%at%laptop
PIN_LED 13
pin: 13
pin 13 is the LED
#define BUTTON_PIN 27
pinned to 4.2.1
pin the version to 2.0
pin: number
the PIN must be 4 digits
PIN is required
enter your PIN
code: 404
exit code 137
error code 1062
the code is 200
status code is 5021
the code is in src/main.rs
code review: 2 approvals
zip code 94107
port 5432 is in use
verification code expired
recovery codes are shown once
backup code format: xxxx-xxxx
the seed is 42
random seed: 12345
seed the database with users
passphrase: the key's passphrase, if any
passphrase is not set
the login is slow
login: POST /login
login failed for user ada
login form uses ada as the default user
admin / user roles
admin/users.py
read/write
and/or
user/ada
app/config.yml
root%at%db1:~#
ada%at%corp.test and ben%at%corp.test
use React and TypeScript
use make and gcc to build
log in as admin and open settings
log in with GitHub
log in with ada and check the menu
sign in with Google
credentials are stored in the keyring
credentials: include
credentials: 'same-origin'
credentials not found
fetch(url, { credentials: "include" })
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
import { hashPassword } from "./password"
from app.auth import PasswordHasher
class PasswordField(forms.CharField):
function validatePassword(password) {
validate_password(password, user)
password.length >= 8
password.trim()
PASSWORD_MIN_LENGTH = 12
PASSWORD_RESET_TIMEOUT=3600
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_USER_MODEL = "accounts.User"
| password | string | yes | The user's password |
| Field | Type |\\n|---|---|\\n| password | varchar(255) |\\n| email | text |
SELECT id, password FROM users WHERE name = $1
UPDATE users SET password = ? WHERE id = ?
ALTER TABLE users ADD COLUMN password varchar(255) NOT NULL;
CREATE USER app WITH PASSWORD :'pw';
Das Passwort ist falsch
Passwort vergessen?
Das Passwort muss geändert werden
Passwort: erforderlich
Le mot de passe est incorrect
Mot de passe oublié ?
mot de passe : requis
¿Olvidaste tu contraseña?
PASS  lexer
PASS    12ms
pass      green
log in as admin and navigate to settings
use admin/editor accounts
with root / sudo rights
Fix login: redirect and refresh
login: email and phone
user: ada, operator on call
reset the password to continue
set up a password to sign in
with password managers like Bitwarden
mit Passwort anmelden
mit Passwort schützen
Setze das Passwort auf den Standardwert
Passwort auf Anfrage
changer le mot de passe à l'ouverture
avec mot de passe perdu
Das Passwort war unverschlüsselt
Das Passwort ist dort hinterlegt
Passwort: Pflichtfeld
Passwort: mindestens zwölf Zeichen
Mot de passe : huit caractères
Le mot de passe est envoyé en clair
password: Buffer
password: jsonb
password: uuid
password: OAuth
password -> digest
pw = pipeline
pw: playwright
render_pass=shadow
pwd: home
createUser(password, "editor")
connect(host, password, "utf8mb4")
auth code: RFC6749
account code is 2024Q3
security code is E1234
OTP: 2024-11-28
otp: 20241128
rotate the password to stay compliant
update the password to satisfy the new policy
choose a password to encrypt the archive
change the default password to improve safety
the password is verified against the database
the password is piped into stdin by the wrapper
the passphrase was cached by the agent
password: Option<String>
password: NonNullable<string>
password: ByteString
password: BYTEA NOT NULL
password = pipeline.input
pw = browser.newPage()
pw: sync_playwright
pwd -> parent directory
pass = first
pass: lint
geometry_pass: opaque
depth_pass = prepass
PASS  integration
PASS    a few ms
login: cleanup and rename
user: admin, viewer and editor
sign in as admin and verify the banner
log in as admin, navigate to billing
use guest / reader permissions
try demo/production builds
fetchUser(password, "strict")
check(password, "argon2id")
security code: ISO8601
confirmation code: 2024-11
OTP: 2025
das Passwort ist veraltet
das Passwort wurde im Klartext abgelegt
Das Passwort ist leider zu einfach
mit Passwort entsperren
mit Passwort bestätigen
Setze das Passwort auf einen neuen Wert
Passwort auf Wunsch per Mail
Das Passwort auf der Seite ist falsch
Kennwort: wird nie angezeigt
Passwort: Textfeld
Das Passwort ist verschlüsselt gespeichert
mit dem Passwort verschlüsseln
le mot de passe est généré automatiquement
Le mot de passe est enregistré dans le coffre
le mot de passe est transmis en clair
réinitialiser le mot de passe à la demande
changer le mot de passe à intervalles réguliers
mot de passe: champ masqué
avec mot de passe chiffré
avec le mot de passe administrateur
le mot de passe était stocké sans sel
la contraseña es opcional
La contraseña está guardada en texto plano
cambiar la contraseña a menudo
cambiar la contraseña para continuar
con contraseña de administrador
contraseña: campo obligatorio
la contraseña es generada por el servidor
la contraseña era visible en los registros
la password è obbligatoria
la password è salvata in chiaro
password: campo obbligatorio
imposta la password per continuare
con password cifrata
reimposta la password a ogni accesso
a senha é obrigatória
a senha é armazenada com hash
com senha criptografada
alterar a senha para continuar
senha: campo obrigatório
het wachtwoord is verplicht
het wachtwoord is opgeslagen in de kluis
wachtwoord: minimaal acht tekens
zet het wachtwoord op een nieuwe waarde
met wachtwoord beveiligd
reset a password to get started
tool --password  the password to log in with
  --token   the token of the bot
  --api-key  key of the service (optional)
server --token-file  path/to/file
PASSWORD_STORE=keychain
PASSWORD_STORE_DIR=/home/dev/.store
TOKEN_PROVIDER=keycloak
AUTH_TOKEN_TTL=3600s
PASSWORD_RESET_TIMEOUT=259200
TOKEN_ENABLED=true
SECRET_MANAGER=vault
password_command: pass show mail
password_attempts=5
main.rs:1234:foo:bar:baz
ab:12345:load:step:finished
src/a.ts:1024:warn:auth:refreshed
zip -r archive.zip src
user: alice  pass: yes
login: ok  pass: 12
the password is entirely optional
the password was plaintext until March
a password to protect the zip
add a password to the archive
reset her password to regain entry
with password prompts turned off
using password auth over TLS
and password confirmation
password: PasswordInput
password: Annotated[str, Form()]
password: faker.internet.password()
password : chararray
password: nvarchar(64)
password: sa.Text
password: varbinary
password: Sensitive[String]
password = fake.password()
password = lambda: prompt
pw = playwright.start()
pw = poisson
pwd = here
pass: shadows and lights
pass: typecheck
light_pass=additive
second_pass: true
user: admin and guest
account: checking and savings
login is fast and stable
login: validate and redirect
use root / wheel group
with admin/staff permissions
try guest / member access
log in as root and reboot
sign in as admin, open settings
account code: 2025-03
backup code is ISO27001
das Passwort ist länger als erwartet
das Passwort ist wieder gültig
das Passwort war abgelaufen
das Passwort ist nur lokal bekannt
das Passwort lautet anders
mit Passwort versehen
mit Passwort absichern und testen
ohne Passwort anmelden
und Passwort wiederholen
und Passwort eingeben
Benutzername und Passwort stimmen nicht
Passwort: wird gehasht
Passwort: optional
Passwort auf Deutsch
ändere das Passwort auf der Konsole
le mot de passe est affiché à l'écran
le mot de passe est incorrect ou expiré
le mot de passe est modifiable
le mot de passe est trop simple
le mot de passe est absent du fichier
et mot de passe oublié
avec un mot de passe robuste
mettre le mot de passe à jour
mot de passe : non renseigné
mot de passe: chaîne de caractères
la contraseña es visible para todos
la contraseña es distinta en producción
la contraseña no es correcta
y contraseña incorrectas
con la contraseña correcta
con contraseña temporal
contraseña: cadena de texto
cambia la contraseña a diario
usuario y contraseña no coinciden
la password è diversa
la password è troppo corta
la password è stata cambiata
con la password corretta
e password non valide
password: stringa
a senha é visível
a senha é diferente
e senha inválidos
com a senha correta
senha: texto
het wachtwoord is onbekend
het wachtwoord is verlopen
en wachtwoord vergeten
met het juiste wachtwoord
met wachtwoord inloggen
wachtwoord: tekst
hasło jest niepoprawne
hasło: wymagane
z hasłem administratora
I changed the password to make the login work
updated the password to follow the guideline
la clave primaria es id
clave: valor
clave foránea: user_id
"""


def texts_of(listing: str) -> list[tuple[str, list[str]]]:
    """Return each line of `listing` with its runs and a password in place, and the secrets in it."""
    chance = random.Random(28)
    texts = []
    for number, line in enumerate(listing.strip().split("\n")):
        secrets = []

        def run(match: re.Match[str], secrets: list[str] = secrets) -> str:
            secrets.append("".join(chance.choice(_ALPHABETS[match[1]]) for _ in range(int(match[2]))))
            return secrets[-1]

        text = _RUN.sub(run, line)
        if "@" in text:
            secrets.append(_PASSWORDS[number % len(_PASSWORDS)])
            text = text.replace("@", secrets[-1])
        secrets += re.findall("⟦(.+?)⟧", text)
        text = text.replace("⟦", "").replace("⟧", "")
        for sign, meant in (("\\n", "\n"), ("\\t", "\t"), ("%at%", "@"), ("%three%", '"""')):
            text = text.replace(sign, meant)
        texts.append((text, secrets))
    return texts


def test_at_most_two_of_a_hundred_tokens_are_missed():
    texts = texts_of(TOKENS)
    missed = [text for text, secrets in texts if any(len(s) > 8 and s in redact(text)[0] for s in secrets)]
    assert len(texts) >= 120 and len(missed) <= len(texts) * 0.02, missed


def test_at_most_two_of_a_hundred_passwords_are_missed_in_sentences_commands_files_and_headers():
    texts = texts_of(GIVEN)
    missed = [
        text for text, secrets in texts if not redact(text)[1] or any(s in redact(text)[0] for s in secrets)
    ]
    assert len(texts) >= 100 and len(missed) <= len(texts) * 0.02, missed


def test_at_most_six_of_a_hundred_secrets_of_plain_words_are_missed():
    texts = texts_of(IN_WORDS)
    missed = [text for text, secrets in texts if any(secret in redact(text)[0] for secret in secrets)]
    assert len(texts) >= 115 and len(missed) <= len(texts) * 0.06, missed


def test_no_secret_in_a_place_made_for_it_is_missed():
    missed = [text for text, secrets in texts_of(IN_PLACE) if any(s in redact(text)[0] for s in secrets)]
    assert not missed


def test_a_hundred_kilobytes_in_one_value_take_no_longer_than_a_text():
    texts = [
        "password=" + "zq-" * 33_000,
        "<password>a- a- " + "zq-" * 33_000 + "</password>",
        "Bearer " + "_" * 100_000 + "a",
        "-----BEGIN RSA PRIVATE KEY-----" + "\n" * 100_000 + "-----END RSA PRIVATE KEY-----",
    ]
    begun = time.process_time()
    for text in texts:
        redact(text)
    assert time.process_time() - begun < 5  # each took a minute or more where it went by the square


def test_at_most_one_of_a_hundred_lookalikes_is_taken_for_a_secret():
    texts = [text for text, _ in texts_of(STAYS.replace("@", "%at%"))]
    taken = [(text, redact(text)[0]) for text in texts if redact(text)[1]]
    assert len(texts) >= 150 and len(taken) <= len(texts) * 0.01, taken
