"""Moments as landing and the catalog keep them."""

from datetime import UTC, datetime


def utc_without_zone(moment: datetime) -> datetime:
    """`moment`, which has a zone, in UTC without one: what a TIMESTAMP column holds."""
    return moment.astimezone(UTC).replace(tzinfo=None)
