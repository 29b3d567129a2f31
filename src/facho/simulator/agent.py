"""SNMP agent without sockets: takes a datagram, returns an answer or nothing.

It follows RFC 3416 and, for version 1, RFC 1157 and RFC 3584, except for its faults.
"""

from dataclasses import dataclass, replace
from random import Random

from facho.adapters.snmp.codec import PduType, Request, decode_request, encode_response_parts, encode_varbind
from facho.engine.brand import Position
from facho.engine.errors import BadAnswer
from facho.engine.snmp import ErrorStatus, Tag, Version
from facho.simulator.device import Device
from facho.simulator.faults import WELL, Faults, Spoiling
from facho.simulator.hostile import lies, pretended
from facho.simulator.lookup import Dies, Fails, Lookup, NoReply, Poison

# Maximum size of a GETBULK answer, so that it fits into one Ethernet frame.
BULK_SIZE = 1400
# Any larger answer is refused with tooBig.
MAX_SIZE = 8192
# Lengths above 127 take up to two more octets, in each of three nested sequences.
LENGTH_RESERVE = 6

KINDS = {PduType.GET: "get", PduType.GET_NEXT: "getnext", PduType.GET_BULK: "getbulk", PduType.SET: "set"}


@dataclass(frozen=True, slots=True)
class AgentReply:
    """Answer to one datagram (None: no answer), and the seconds of work for it."""

    payload: bytes | None
    kind: str = "unreadable"
    asked: int = 0
    answered: int = 0
    work: float = 0.0


class SimulatedAgent:
    """Agent of one device. A wrong community gets no answer, as from real ones.

    `faults` may be exchanged at any time.
    """

    def __init__(self, device: Device, community: str = "public", faults: Faults = WELL, seed: int = 0) -> None:
        self._faults = faults
        self.bulk_size = BULK_SIZE
        self.max_size = MAX_SIZE
        self._community = community.encode()
        self._random = Random(f"agent {seed}")
        self.install(device)

    def install(self, device: Device) -> None:
        """Use this device from now on."""
        self.device = device
        self._pretend()

    @property
    def faults(self) -> Faults:
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        before, self._faults = self._faults, faults
        if lies(faults) != lies(before):
            self._pretend()

    def _pretend(self) -> None:
        """Prepare the tables that are shown, which faults may change."""
        self._shown = pretended(self.device, self._faults)
        self._onu_numbers = {_place(onu.position): number for number, onu in enumerate(self._shown.plant.onus)}

    def serve(self, datagram: bytes, now: float) -> AgentReply:
        """Return the answer to a datagram, and its cost. `now` is the time that values depend on."""
        try:
            request = decode_request(datagram)
        except BadAnswer:
            return AgentReply(None)
        faults, kind, asked = self.faults, KINDS[request.pdu_type], len(request.oids)
        # Version 1 has no GETBULK.
        is_impossible = request.version == Version.V1 and request.pdu_type == PduType.GET_BULK
        if faults.mute or request.community != self._community or is_impossible:
            return AgentReply(None, kind, asked)
        poison = None
        if faults.gen_err_at is not None or faults.silent_at is not None:
            poison = Poison(self._number(faults.gen_err_at), self._number(faults.silent_at), faults.only_column)
        lookup = Lookup(self._shown.mib, request.version, faults, poison, now)
        status, index = ErrorStatus.NO_ERROR, 0
        try:
            varbinds = self._varbinds(request, lookup)
        except Fails as failure:
            status, index = failure.status, failure.index
            # An error has the variables of the request, or none if even they might be too big.
            is_bare = status == ErrorStatus.TOO_BIG and request.version != Version.V1
            varbinds = [] if is_bare else [encode_varbind(oid, Tag.NULL, None) for oid in request.oids]
        except (Dies, NoReply):
            return AgentReply(None, kind, asked, work=faults.per_pdu * faults.slow_by)
        payload, answered = self._pack(request, status, index, varbinds)
        work = faults.per_pdu + answered * faults.per_varbind + len(lookup.lit) * faults.per_optical_row
        hang = faults.zero_repetitions_hang if self._hangs(request) else 0.0
        return AgentReply(payload, kind, asked, answered, hang + work * faults.slow_by)

    def _number(self, position: Position | None) -> int | None:
        return None if position is None else self._onu_numbers.get(_place(position))

    def _varbinds(self, request: Request, lookup: Lookup) -> list[bytes]:
        is_bulk, wanted = request.pdu_type == PduType.GET_BULK, len(request.oids)
        if is_bulk:
            once, repetitions = _bulk_shape(request)
            wanted = once + repetitions * (len(request.oids) - once)
        if self.faults.too_big_above is not None and wanted > self.faults.too_big_above:
            raise Fails(ErrorStatus.TOO_BIG, 0)
        if is_bulk:
            return self._bulk(request, lookup)
        if request.pdu_type == PduType.SET:
            raise Fails(ErrorStatus.NO_SUCH_NAME if request.version == Version.V1 else ErrorStatus.NO_ACCESS, 1)
        read = lookup.get if request.pdu_type == PduType.GET else lookup.get_next
        varbinds = [read(number, oid) for number, oid in enumerate(request.oids, 1)]
        if sum(map(len, varbinds)) > self.max_size + self.faults.name_bytes - _overhead(request):
            raise Fails(ErrorStatus.TOO_BIG, 0)
        return varbinds

    def _bulk(self, request: Request, lookup: Lookup) -> list[bytes]:
        """Return as many variables as fit. An agent that dies on the way returns those so far."""
        once, repetitions = _bulk_shape(request)
        if self._hangs(request):
            return []
        faults = self.faults
        if faults.bulk_rows is not None:
            repetitions = min(repetitions, faults.bulk_rows)
        left = (self.bulk_size if faults.bulk_bytes is None else faults.bulk_bytes) - _overhead(request)
        left += faults.name_bytes
        varbinds: list[bytes] = []
        try:
            for varbind in lookup.bulk(request.oids, once, repetitions):
                left -= len(varbind)
                if left < 0:
                    break
                varbinds.append(varbind)
        except Dies:
            if not varbinds:
                raise
        if left < 0 and not varbinds:
            raise Fails(ErrorStatus.TOO_BIG, 0)
        return varbinds

    def _pack(self, request: Request, status: int, index: int, varbinds: list[bytes]) -> tuple[bytes, int]:
        """Return the datagram, complete or spoiled, and the number of its variables."""
        spoiling = self.faults.spoiling if self._random.random() < self.faults.spoiled else None
        if spoiling is Spoiling.EMPTY:
            varbinds = []
        elif spoiling is Spoiling.HALF:
            varbinds = varbinds[: len(varbinds) // 2]
        elif spoiling is Spoiling.STRAY:
            request = replace(request, request_id=request.request_id ^ 1)
        payload = encode_response_parts(request, status, index, varbinds)
        if spoiling is Spoiling.NOISE:
            payload = self._random.randbytes(len(payload))
        elif spoiling is Spoiling.CUT:
            payload = payload[: len(payload) // 2]
        return payload, len(varbinds)

    def _hangs(self, request: Request) -> bool:
        is_bulk = request.pdu_type == PduType.GET_BULK
        return is_bulk and request.max_repetitions <= 0 and self.faults.zero_repetitions_hang > 0


def _place(position: Position) -> tuple[int, int, int | None]:
    """Return the key of an ONU: a simulated OLT has one shelf, so its number does not matter."""
    return position.slot, position.port, position.onu


def _bulk_shape(request: Request) -> tuple[int, int]:
    """Return the number of variables that are read once, and the repetitions of the others."""
    return min(max(request.non_repeaters, 0), len(request.oids)), max(request.max_repetitions, 0)


def _overhead(request: Request) -> int:
    return len(encode_response_parts(request, 0, 0, ())) + LENGTH_RESERVE
