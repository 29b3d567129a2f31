"""Levels of optical power. Limits of GPON class B+ optics, in dBm."""

from facho.apps.telemetry.models import RX_WEAK

# Received power of an ONU: below `RX_WEAK` it is weak, above `RX_STRONG` it is overloaded.
RX_FAIR = -25.0
RX_STRONG = -8.0

# Minimum power that an OLT port must receive from an ONU.
OLT_RX_WEAK = -28.0
OLT_RX_FAIR = -26.0

# Transmit power of a healthy ONU.
TX_LOW = 0.5
TX_HIGH = 5.0


def rx_level(dbm: float | None) -> str:
    """Return the level of an ONU's received power: good, fair, weak or strong; empty without a value."""
    if dbm is not None and dbm > RX_STRONG:
        return "strong"
    return _level(dbm, RX_WEAK, RX_FAIR)


def olt_rx_level(dbm: float | None) -> str:
    """Return the level of the power that the OLT receives from an ONU."""
    return _level(dbm, OLT_RX_WEAK, OLT_RX_FAIR)


def tx_level(dbm: float | None) -> str:
    """Return the level of an ONU's transmit power."""
    if dbm is None:
        return ""
    return "good" if TX_LOW <= dbm <= TX_HIGH else "fair"


def _level(dbm: float | None, weak: float, fair: float) -> str:
    if dbm is None:
        return ""
    if dbm < weak:
        return "weak"
    return "fair" if dbm < fair else "good"
