"""An OpenLDAP server of our own, with TLS, a few people and groups. What it holds is gone when it ends."""

import shutil
import signal
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from server_process import Launched, NoServerError, environment

SUFFIX = "dc=example,dc=net"
ROOT_DN, ROOT_PASSWORD = f"cn=root,{SUFFIX}", "the-bind-password"
PEOPLE, GROUPS = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
# Message 1: bind with version 3, no name and an empty password.
ANONYMOUS_BIND = bytes.fromhex("300c020101600702010304008000")
BER_SEQUENCE = b"0"
SCHEMAS = ("core", "cosine", "inetorgperson", "nis")

ENTRIES = f"""
dn: {SUFFIX}
objectClass: domain
dc: example

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: {GROUPS}
objectClass: organizationalUnit
ou: groups

dn: uid=ana,{PEOPLE}
objectClass: inetOrgPerson
uid: ana
cn: Ana Paz
givenName: Ana
sn: Paz
mail: ana@example.net
userPassword: ana's password

dn: uid=100% (luis)*,{PEOPLE}
objectClass: inetOrgPerson
uid: 100% (luis)*
cn: Luis
sn: Gil
userPassword: luis's password

dn: cn=NOC,{GROUPS}
objectClass: groupOfNames
cn: NOC
member: uid=ana,{PEOPLE}
member: uid=100% (luis)*,{PEOPLE}

dn: cn=noc-admins,{GROUPS}
objectClass: groupOfUniqueNames
cn: noc-admins
uniqueMember: {ROOT_DN}

dn: cn=desk,{GROUPS}
objectClass: posixGroup
cn: desk
gidNumber: 1000
"""


class LaunchedLdap(Launched):
    """slapd on loopback; `ca_file` has the certificate that it shows."""

    name = "slapd"
    stop_signal = signal.SIGTERM

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "certificate.pem"

    def prepare(self) -> None:
        installed = slapd()
        if installed is None:
            raise NoServerError("there is no slapd. Install it: apt-get install slapd")
        # A copy: AppArmor on Ubuntu keeps the installed one out of this folder.
        self._binary = str(shutil.copy(installed, self.folder / "slapd"))
        _write_certificate(self.ca_file, self.folder / "key.pem")
        (self.folder / "rows").mkdir()
        self._settings = self.folder / "slapd.conf"
        includes = [f"include /etc/ldap/schema/{name}.schema" for name in SCHEMAS]
        lines = [
            *includes,
            "modulepath /usr/lib/ldap",
            "moduleload back_mdb",
            f"TLSCertificateFile {self.ca_file}",
            f"TLSCertificateKeyFile {self.folder / 'key.pem'}",
            "database mdb",
            f"suffix {SUFFIX}",
            f"rootdn {ROOT_DN}",
            f"rootpw {ROOT_PASSWORD}",
            f"directory {self.folder / 'rows'}",
        ]
        self._settings.write_text("\n".join(lines) + "\n")
        command = [self._binary, "-T", "add", "-f", str(self._settings)]
        result = subprocess.run(command, input=ENTRIES, env=environment(), capture_output=True, text=True)
        if result.returncode:
            raise NoServerError(f"slapd did not take the entries: {result.stderr[-1000:]}")

    def command(self) -> list[str]:
        # With -d it stays in the foreground.
        return [self._binary, "-d", "0", "-f", str(self._settings), "-h", self.url]

    def ask(self) -> None:
        # An anonymous bind: another program may have taken the port since it was found free.
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
            line.sendall(ANONYMOUS_BIND)
            if line.recv(1) != BER_SEQUENCE:
                raise OSError("the program on this port is no LDAP server")


def slapd() -> str | None:
    return shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/lib/openldap:/usr/libexec")


def _write_certificate(certificate: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
