"""The only place where sizes and rates of units are written down."""

KIB = 2**10
MIB = 2**20
GIB = 2**30
GB = 10**9
TERA = 10**12

BITS_PER_BYTE = 8
SECONDS_PER_HOUR = 3600
HOURS_PER_MONTH = 730
