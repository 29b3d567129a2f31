"""Everything that can go wrong, named for what happened.

FachoError
├── SnmpError
│   ├── NoAnswer         nothing came back in time; the OLT may be busy, away, or know another community
│   ├── BadAnswer        something came back that is not an answer to what was asked
│   └── Refused          an SNMPv3 agent does not accept our user, keys or time
├── OltUnreachable       an OLT answered nothing at all in a whole run
├── OltBusy              somebody else holds the lease of the OLT
├── LeaseLost            we held it, and no longer do
├── DatabaseUnavailable         the database was unavailable until it was too late
├── OltGone              the OLT was deleted or disabled before its turn came
├── UnknownBrand         no profile of that name
├── DeliveryFailed       a channel did not take a message
├── UnreadableMessage    (adapters/wire) what another process, or an earlier one, wrote cannot be read
├── NotKept              (store/spool) there is no room for what has to wait
└── SpoolTaken           (store/spool) another process has this spool
"""

from facho.engine.model import Traffic


class FachoError(Exception):
    """Reads as a sentence. `is_temporary` says whether the same try may succeed later."""

    is_temporary = True
    # What a run that ended in this error had cost its OLT by then.
    traffic = Traffic()


class SnmpError(FachoError):
    """A request that brought no usable answer."""


class NoAnswer(SnmpError):
    """No answer came in time."""


class BadAnswer(SnmpError):
    """An answer that cannot be read, or that answers something else."""


class Refused(SnmpError):
    """The agent answered that it does not accept us."""

    is_temporary = False


class OltUnreachable(FachoError):
    """The OLT answered nothing at all."""

    @classmethod
    def unresolved(cls, host: str) -> "OltUnreachable":
        return cls(f"The name {host} could not be resolved. Check the name and the name server.")

    @classmethod
    def after(cls, olt: str, pdus: int, seconds: float) -> "OltUnreachable":
        requests = "1 request" if pdus == 1 else f"{pdus} requests"
        return cls(
            f"{olt} gave no answer to {requests} in {seconds:.1f} s. "
            "Check its address and its community, and that it lets this machine ask."
        )


class OltBusy(FachoError):
    """Somebody else holds the lease of the OLT."""


class LeaseLost(FachoError):
    """The lease ran out, or was taken over, while we held it."""


class DatabaseUnavailable(FachoError):
    """The database did not answer until it was too late to start."""


class OltGone(FachoError):
    """The OLT was deleted or disabled before its turn came."""

    is_temporary = False


class UnknownBrand(FachoError):
    """No profile of that name."""

    is_temporary = False


class DeliveryFailed(FachoError):
    """A channel did not take a message. The sentence names the host, and never a secret."""

    def __init__(
        self, sentence: str, *, is_temporary: bool, code: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.is_temporary = is_temporary
        # What the channel answered, if it answered.
        self.code = code
        # How many seconds it asked to be left alone.
        self.retry_after = retry_after
