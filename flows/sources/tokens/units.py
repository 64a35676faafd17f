"""Token prices are quoted for one token by some and for a million by others; ours are USD for a million."""

from decimal import Decimal
from typing import Any

from fitmart.flows.sources import cells

TOKENS_PER_MTOK = 10**6
NANO = Decimal("0.000000001")


def per_mtok(per_token: Any, *, what: str) -> Decimal | None:
    """USD for one token → USD for a million; None where there is none, or a negative sentinel."""
    price = cells.exact(per_token, what=what)
    if price is None or price < 0:
        return None
    return (price * TOKENS_PER_MTOK).quantize(NANO)
