"""The nginx example as it stands in deploy/, with ports and a certificate of its own, before a real Facho."""

import http.client
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from installation import PASSWORD, USER, Installation, embedded

from server_process import free_port

EXAMPLE = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
HOST = "noc.example.net"
ORIGIN = f"https://{HOST}"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx here to try deploy/nginx.conf with")


class Door(http.client.HTTPSConnection):
    """A connection to this machine that expects a certificate of the host."""

    def __init__(self, port: int, certificate: Path) -> None:
        self._trusted = ssl.create_default_context(cafile=certificate)
        super().__init__("127.0.0.1", port, timeout=30, context=self._trusted)

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=HOST)


class Answer(NamedTuple):
    """What came back, read to its end."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @classmethod
    def to(cls, door: http.client.HTTPConnection) -> Self:
        with door.getresponse() as response:
            return cls(response.status, response.headers, response.read())

    @property
    def cookies(self) -> list[str]:
        return self.headers.get_all("Set-Cookie") or []


class Site:
    """A Facho behind nginx, as a browser reaches it."""

    def __init__(self, facho: Installation, folder: Path) -> None:
        self.facho = facho
        self._plain, self._secure = free_port(), free_port()
        self._folder = folder
        self._certificate = certify(folder)

    def config(self) -> str:
        """Return a whole configuration around the example: only places and ports are other ones."""
        text = re.sub(r"^ *listen \[::\].*\n", "", EXAMPLE.read_text(), flags=re.MULTILINE)
        changes = {
            "listen 80;": f"listen 127.0.0.1:{self._plain};",
            "listen 443 ": f"listen 127.0.0.1:{self._secure} ",
            "server 127.0.0.1:8000 ": f"server 127.0.0.1:{self.facho.port} ",
            f"/etc/nginx/tls/{HOST}.": f"{self._folder}/{HOST}.",
        }
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        places = "".join(f"{kind}_temp_path {self._folder};\n" for kind in ("client_body", "proxy"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        return (
            f"{user}daemon off;\npid {self._folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{places}{text}\n}}\n"
        )

    def send(self, method: str, path: str, body: object = None, **headers: str) -> "Answer":
        """Return the answer to a request over TLS."""
        with closing(Door(self._secure, self._certificate)) as door:
            door.request(method, path, body, {"Host": HOST, **headers})
            return Answer.to(door)

    def send_plain(self, path: str) -> "Answer":
        with closing(http.client.HTTPConnection("127.0.0.1", self._plain, timeout=30)) as door:
            door.request("GET", path, headers={"Host": HOST})
            return Answer.to(door)

    @contextmanager
    def stream(self, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """Give out an answer that is read as it comes."""
        with closing(Door(self._secure, self._certificate)) as door:
            door.request("GET", path, headers={"Host": HOST, **headers})
            with door.getresponse() as response:
                yield response

    def log_in(self, origin: str = ORIGIN) -> "Answer":
        """Log in as a browser does that was sent here by a page of this origin."""
        (csrf,) = self.send("GET", "/login/").cookies
        token = csrf.partition(";")[0].partition("=")[2]
        form = urlencode({"username": USER, "password": PASSWORD, "csrfmiddlewaretoken": token})
        kind = "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, "Cookie": f"facho_csrf={token}"} | ({"Origin": origin} if origin else {})
        return self.send("POST", "/login/", form, **headers)

    def session(self) -> str:
        return next(each for each in self.log_in().cookies if each.startswith("facho_session=")).partition(";")[0]


def certify(folder: Path) -> Path:
    """Make a certificate for an hour, and return where it is; its key lies beside it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    (folder / f"{HOST}.key").write_bytes(secret)
    path = folder / f"{HOST}.pem"
    path.write_bytes(certificate.public_bytes(pem))
    return path


@pytest.fixture(scope="module")
def site(blank: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("nginx")
    with embedded(blank, folder / "data", {"FACHO_PUBLIC_URL": ORIGIN}) as facho:
        site = Site(facho, folder)
        config = folder / "nginx.conf"
        config.write_text(site.config())
        # It opens its ports before it says that it is well.
        subprocess.run([NGINX, "-t", "-q", "-c", config], check=True)
        with subprocess.Popen([NGINX, "-c", config]) as nginx:
            try:
                wait_until_open(site)
                yield site
            finally:
                nginx.terminate()


def wait_until_open(site: Site) -> None:
    """Ask again with each snapshot of the engine until somebody answers."""

    def answers() -> bool:
        try:
            return site.send("GET", "/healthz").status == 200
        except OSError:
            return False

    site.facho.wait_for(answers)


def test_plain_http_is_sent_to_tls(site):
    answer = site.send_plain("/onus/?state=los")

    assert (answer.status, answer.headers["Location"]) == (301, f"{ORIGIN}/onus/?state=los")


def test_a_person_logs_in_and_gets_cookies_for_tls_only(site):
    answer = site.log_in()

    assert (answer.status, answer.headers["Location"]) == (302, "/")
    assert len(answer.cookies) == 2
    assert [cookie for cookie in answer.cookies if "; Secure" not in cookie] == []
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=")


@pytest.mark.parametrize(
    "origin",
    [
        pytest.param("https://evil.example", id="another site"),
        # Only over TLS must it be said; so this one shows that Facho knows of the TLS.
        pytest.param("", id="it is not said which site"),
    ],
)
def test_a_form_that_is_not_ours_is_refused(site, origin):
    assert site.log_in(origin).status == 403


@pytest.mark.parametrize("path", ["/metrics", "/metrics?x=1", "//metrics", "/%6detrics", "/x/../metrics"])
def test_metrics_are_not_to_be_had_from_outside(site, path):
    answer = site.send("GET", path)

    assert answer.status == 404
    assert b"facho_" not in answer.body


def test_news_come_as_they_happen(site):
    with site.stream("/events/", Cookie=site.session()) as answer:
        topics = (line for line in answer if line.startswith(b"event: snapshot"))
        # Held back, they would come together with much else. Half a minute without a line is an error.
        news = [next(topics) for _ in range(3)]

    assert news == [b"event: snapshot\n"] * 3


def test_styles_are_compressed(site):
    answer = site.send("GET", "/static/unfold/css/styles.css", **{"Accept-Encoding": "gzip"})

    assert answer.headers["Content-Encoding"] == "gzip"


def test_a_long_import_reaches_facho(site):
    answer = site.send("POST", "/login/", b"x" * (15 << 20), **{"Content-Type": "text/csv"})

    # It is Facho that refuses it: there is no token in it.
    assert (answer.status, answer.headers["X-Frame-Options"]) == (403, "DENY")


def test_an_endless_import_is_refused_before_it_is_read(site):
    answer = site.send("POST", "/login/", **{"Content-Length": str(21 << 20)})

    assert answer.status == 413


def test_a_facho_that_starts_again_is_found_again(site):
    assert site.send("GET", "/login/").status == 200

    site.facho.stop()
    while_away = site.send("GET", "/login/").status
    site.facho.start()

    assert while_away == 502
    assert site.send("GET", "/login/").status == 200
