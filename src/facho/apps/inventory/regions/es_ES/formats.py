"""Spanish, Spain and the south of America: 1.234,5."""

DECIMAL_SEPARATOR = ","
THOUSAND_SEPARATOR = "."
