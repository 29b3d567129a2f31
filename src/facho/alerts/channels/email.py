"""Messages by e-mail."""

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from enum import StrEnum

from facho.alerts.channels.deadline import SECONDS, Deadline
from facho.alerts.channels.plain import plain
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
    timeout: float = SECONDS

    def send(self, message: Message) -> int | None:
        mail = self._mail(message)
        with Deadline(self.timeout) as deadline, _failures(self, deadline), _session(self, deadline) as server:
            if self.user:
                server.login(self.user, self.password)
            refused = server.send_message(mail)
        if refused:
            names = ", ".join(sorted(refused))
            raise DeliveryFailed(
                f"{self.host} refused the message for {names}; the other recipients got it", is_temporary=False
            )
        return None

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        # A line break in a header would start another header.
        mail["Subject"] = " ".join(message.subject.split())
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.recipients)
        mail["Date"] = formatdate()
        # The same for every attempt, so that mail clients show a duplicate once.
        mail["Message-ID"] = f"<facho.{message.delivery_id}@{self.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(plain(message, LONGEST))
        return mail


class _Watched(smtplib.SMTP):
    """Puts each connection under the deadline before its first read; STARTTLS replaces the connection."""

    def __init__(self, deadline: Deadline, host: str, port: int) -> None:
        self._deadline = deadline
        # The default would look up our own name, which can be slow.
        super().__init__(host, port, local_hostname=socket.gethostname(), timeout=deadline.left)

    def getreply(self) -> tuple[int, bytes]:
        if self.sock is not None:
            self._deadline.watch(self.sock)
        return super().getreply()


class _WatchedTls(_Watched, smtplib.SMTP_SSL):
    """The same over TLS from the start. The certificate is checked."""

    def __init__(self, deadline: Deadline, host: str, port: int) -> None:
        self._deadline = deadline
        smtplib.SMTP_SSL.__init__(
            self,
            host,
            port,
            local_hostname=socket.gethostname(),
            timeout=deadline.left,
            context=ssl.create_default_context(),
        )


@contextlib.contextmanager
def _session(email: Email, deadline: Deadline) -> Iterator[smtplib.SMTP]:
    kind = _WatchedTls if email.security is Security.TLS else _Watched
    server = kind(deadline, email.host, email.port)
    try:
        if email.security is Security.STARTTLS:
            server.starttls(context=ssl.create_default_context())
        yield server
        with contextlib.suppress(OSError, smtplib.SMTPException):
            # The mail was accepted; an error at the end does not matter.
            server.quit()
    finally:
        server.close()


@contextlib.contextmanager
def _failures(email: Email, deadline: Deadline) -> Iterator[None]:
    """Convert library errors; `from None`, because their text may hold the message."""
    try:
        yield
    except UnicodeError:
        raise DeliveryFailed("an address has invalid characters", is_temporary=False) from None
    except (OSError, smtplib.SMTPException) as error:
        # First: a truncated answer can look like another error.
        if deadline.is_over or isinstance(error, TimeoutError):
            raise DeliveryFailed(
                f"{email.host} did not answer within {deadline.seconds:g} s", is_temporary=True
            ) from None
        raise _failure(email.host, error) from None


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
