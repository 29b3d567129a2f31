"""Spanish as Latin America's NOCs write numbers: -21.53 dBm, as the OLT's own command line does."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
