"""Messages by e-mail, through Django's SMTP backend."""

import contextlib
import smtplib
import socket
import ssl
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from threading import Timer
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from facho.alerts.channels import TIMEOUT, plain
from facho.alerts.channels.destinations import guarded
from facho.alerts.rules import Message
from facho.engine.errors import DeliveryFailed

# Longer than any message of Facho; servers accept far more.
LONGEST = 100_000

# SMTP codes from here on are permanent errors.
PERMANENT = 500


class Security(StrEnum):
    """Encryption of the connection to the mail server."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class Email:
    """Sends one mail to all recipients."""

    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: Security = Security.STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)
    timeout: float = TIMEOUT

    def send(self, message: Message) -> int | None:
        with _Deadline(self.timeout) as deadline, guarded(self.host):
            try:
                self._send(message, deadline)
            # `from None`, because the text of these errors may contain the message.
            except ValueError:
                raise DeliveryFailed("an address has invalid characters", is_temporary=False) from None
            except OSError as error:
                # First: a truncated answer can look like another error.
                if deadline.is_over or isinstance(error, TimeoutError):
                    sentence = f"{self.host} did not answer within {self.timeout:g} s"
                    raise DeliveryFailed(sentence, is_temporary=True) from None
                raise _failure(self.host, error) from None
        return None

    def _send(self, message: Message, deadline: "_Deadline") -> None:
        backend = _Backend(
            deadline,
            host=self.host,
            port=self.port,
            username=self.user,
            password=self.password,
            use_tls=self.security is Security.STARTTLS,
            use_ssl=self.security is Security.TLS,
            timeout=self.timeout,
        )
        headers = {
            # The same for every attempt, so that mail clients show a duplicate once.
            "Message-ID": f"<facho.{message.key}@{self.sender.rpartition('@')[2]}>",
            "Auto-Submitted": "auto-generated",
        }
        # A line break in a header would start another header.
        subject = " ".join(message.subject.split())
        mail = EmailMessage(subject, plain(message, LONGEST), self.sender, self.recipients, headers=headers)
        try:
            backend.open()
            backend.send_messages([mail])
        finally:
            with contextlib.suppress(OSError):
                # The mail was accepted, or another error is raised; an error at the end does not matter.
                backend.close()


class _Deadline:
    """Closes the connection when its time is over. The timeout of a socket restarts with each byte."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._close)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()

    def watch(self, connection: socket.socket | None) -> None:
        """Set the connection to close."""
        self._socket = connection
        if self.is_over:
            raise smtplib.SMTPServerDisconnected("the deadline is over")

    def _close(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # On the plain socket: a TLS socket would first release buffers that its reader is using.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Connection(smtplib.SMTP):
    """A connection under the deadline. Recipients that the server refuses are an error, not a return value."""

    def __init__(self, host: str, port: int, *, deadline: _Deadline, **options: Any) -> None:
        self._server, self._deadline = host, deadline
        super().__init__(host, port, **options)

    def getreply(self) -> tuple[int, bytes]:
        # Before each answer, because STARTTLS replaces the socket.
        self._deadline.watch(self.sock)
        return super().getreply()

    def sendmail(self, *arguments: Any, **options: Any) -> dict[str, tuple[int, bytes]]:
        refused = super().sendmail(*arguments, **options)
        if refused:
            names = ", ".join(sorted(refused))
            sentence = f"{self._server} refused the message for {names}; the other recipients got it"
            raise DeliveryFailed(sentence, is_temporary=False)
        return refused


class _TlsConnection(_Connection, smtplib.SMTP_SSL):
    """The same over TLS from the start."""


class _Backend(EmailBackend):
    def __init__(self, deadline: _Deadline, **options: Any) -> None:
        super().__init__(**options)
        self._deadline = deadline

    @property
    def connection_class(self) -> Any:
        return partial(_TlsConnection if self.use_ssl else _Connection, deadline=self._deadline)


def _failure(host: str, error: Exception) -> DeliveryFailed:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _words in error.recipients.values()]
        sentence = f"{host} refused all recipients"
        return DeliveryFailed(sentence, is_temporary=min(codes) < PERMANENT, code=max(codes))
    if isinstance(error, smtplib.SMTPResponseException):
        is_login = isinstance(error, smtplib.SMTPAuthenticationError)
        words = "rejected the user or the password" if is_login else f"answered {error.smtp_code}"
        return DeliveryFailed(f"{host} {words}", is_temporary=error.smtp_code < PERMANENT, code=error.smtp_code)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return DeliveryFailed(f"{host} does not support the configured security or login", is_temporary=False)
    if isinstance(error, ssl.SSLCertVerificationError):
        sentence = f"{host} has no trusted certificate: {error.verify_message}"
        return DeliveryFailed(sentence, is_temporary=True)
    reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
    return DeliveryFailed(f"{host} could not be reached: {reason}", is_temporary=True)
