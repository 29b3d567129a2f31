"""Error tree.

FachoError
├── SnmpError
│   ├── NoAnswer         no answer in time: OLT busy, unreachable, or another community
│   ├── BadAnswer        an answer that is unreadable or does not match the request
│   └── Refused          an SNMPv3 agent does not accept our user, keys or time
├── OltUnreachable       no answer at all in a whole run
├── OltBusy              another holder has the lease of the OLT
├── LeaseLost            the lease expired or was taken over
├── DatabaseUnavailable  the database was unavailable until it was too late
├── OltGone              the OLT was deleted or disabled before the run
├── UnknownBrand         no profile of that name
├── BadAddress           a text that is not an address
├── DeliveryFailed       a channel did not accept a message
├── StoreUnavailable     a time series store did not answer, or reported that it cannot work now
├── StoreRefuses         a time series store accepts nothing from us: address, path, credentials
├── BatchRejected        a time series store does not accept these samples
├── UnreadableMessage    (adapters/wire) a message or spool record cannot be read
├── NotKept              (store/spool) the spool is full
└── SpoolTaken           (store/spool) another process has this spool
"""

from facho.engine.model import Traffic


class FachoError(Exception):
    """Base of all errors. The message is a sentence. `is_temporary`: the same attempt may succeed later."""

    is_temporary = True
    # Traffic of the run until the error.
    traffic = Traffic()


class SnmpError(FachoError):
    """A request without a usable answer."""


class NoAnswer(SnmpError):
    """No answer came in time."""


class BadAnswer(SnmpError):
    """An answer that cannot be read or does not match the request."""


class Refused(SnmpError):
    """The agent denied access."""

    is_temporary = False


class OltUnreachable(FachoError):
    """The OLT did not answer at all."""

    @classmethod
    def after(cls, olt: str, pdus: int, seconds: float) -> "OltUnreachable":
        requests = "1 request" if pdus == 1 else f"{pdus} requests"
        return cls(
            f"{olt} did not answer {requests} in {seconds:.1f} s. "
            "Check the address, the community and the OLT's SNMP access list."
        )


class OltBusy(FachoError):
    """Another holder has the lease of the OLT."""


class LeaseLost(FachoError):
    """The lease expired or was taken over."""


class DatabaseUnavailable(FachoError):
    """The database was unavailable until it was too late to start."""


class OltGone(FachoError):
    """The OLT was deleted or disabled before the run."""

    is_temporary = False


class UnknownBrand(FachoError):
    """No profile of that name."""

    is_temporary = False


class BadAddress(FachoError):
    """A text is not a host, or a host and a port."""

    is_temporary = False


class DeliveryFailed(FachoError):
    """A channel did not accept a message. The text names the host and never a secret."""

    def __init__(
        self, sentence: str, *, is_temporary: bool, code: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.is_temporary = is_temporary
        # Status code of the channel, if it answered.
        self.code = code
        # Seconds to wait, as requested by the channel.
        self.retry_after = retry_after


class StoreUnavailable(FachoError):
    """A time series store cannot take anything now."""


class StoreRefuses(FachoError):
    """A time series store would refuse any request like this one. It works after the setting is corrected."""


class BatchRejected(FachoError):
    """A time series store refuses the content of a request."""

    is_temporary = False
