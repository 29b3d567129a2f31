"""When a power is good, and when an engineer should look. Limits of GPON class B+ optics, in dBm."""

# What an ONU must at least receive, and what blinds it.
RX_WEAK = -27.0
RX_FAIR = -25.0
RX_STRONG = -8.0

# What an OLT port must at least receive of an ONU.
OLT_RX_WEAK = -28.0
OLT_RX_FAIR = -26.0

# What the laser of a healthy ONU sends.
TX_LOW = 0.5
TX_HIGH = 5.0


def rx_level(dbm: float | None) -> str:
    """Return how good the power is that an ONU receives: good, fair, weak or strong; nothing where none was read."""
    if dbm is not None and dbm > RX_STRONG:
        return "strong"
    return _level(dbm, RX_WEAK, RX_FAIR)


def olt_rx_level(dbm: float | None) -> str:
    """Return how good the power is that the OLT receives of an ONU."""
    return _level(dbm, OLT_RX_WEAK, OLT_RX_FAIR)


def tx_level(dbm: float | None) -> str:
    """Return whether the laser of an ONU sends what it should."""
    if dbm is None:
        return ""
    return "good" if TX_LOW <= dbm <= TX_HIGH else "fair"


def _level(dbm: float | None, weak: float, fair: float) -> str:
    if dbm is None:
        return ""
    if dbm < weak:
        return "weak"
    return "fair" if dbm < fair else "good"
