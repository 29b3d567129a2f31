"""An OpenID Connect provider on loopback that logs in `person` without asking, and whose tokens a test may spoil."""

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import RSAAlgorithm

CLIENT_ID, CLIENT_SECRET = "facho", "the-client-secret"
KEY, OTHER_KEY = (generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


class Provider:
    """Serves while it is used as a context."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        # Claims of the ID token that replace the true ones, and the key that it is signed with.
        self.spoiled: dict[str, Any] = {}
        self.key: Any = KEY
        self.algorithm = "RS256"
        self.requests: list[str] = []
        self._logins: dict[str, dict[str, str]] = {}
        self._people: dict[str, dict[str, Any]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests.append(self.path)
                provider.answer(self, urlsplit(self.path).path, _one_each(urlsplit(self.path).query))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.requests.append(self.path)
                provider.answer(self, self.path, _one_each(body))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler, path: str, fields: dict[str, str]) -> None:
        if path == "/authorize":
            code = secrets.token_urlsafe()
            self._logins[code] = fields
            query = urlencode({"code": code, "state": fields["state"]})
            handler.send_response(302)
            handler.send_header("Location", f"{fields['redirect_uri']}?{query}")
            handler.end_headers()
            return
        status, content = 200, None
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
            names |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "end-session"}
            content = {"issuer": self.issuer} | {name: f"{self.issuer}/{end}" for name, end in names.items()}
        elif path == "/jwks":
            key = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
            content = {"keys": [key | {"kid": "1", "use": "sig", "alg": "RS256"}]}
        elif path == "/token":
            status, content = self._tokens(fields)
        elif path == "/userinfo":
            content = self._people[handler.headers["Authorization"].removeprefix("Bearer ")]
        handler.send_response(200 if content and status == 200 else status if content else 404)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        handler.wfile.write(json.dumps(content).encode())

    def _tokens(self, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        login = self._logins.pop(fields.get("code", ""), {})
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        is_ours = (fields["client_id"], fields["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        is_started = login.get("code_challenge") == base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if not is_ours or not is_started or login["redirect_uri"] != fields["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        token = secrets.token_urlsafe()
        self._people[token] = self.person
        now = int(time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": self.person["sub"], "iat": now, "exp": now + 300}
        claims |= {"nonce": login["nonce"]} | self.spoiled
        kept = {name: value for name, value in claims.items() if value is not None}
        signed = jwt.encode(kept, self.key, algorithm=self.algorithm, headers={"kid": "1"})
        return 200, {"access_token": token, "token_type": "Bearer", "id_token": signed}


def _one_each(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
