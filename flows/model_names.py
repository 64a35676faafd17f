"""Model names of price lists to Hub repositories: exact ids first, then what is the same name written otherwise.

Only equal names match. A variant (`-turbo`, `-fp8`, `:nitro`) is another product and stays unresolved.
"""

import re
from collections import Counter
from collections.abc import Iterable

FIREWORKS_POINT = re.compile(r"(?<=\d)p(?=\d)")  # qwen2p5 is qwen2.5


def plain_name(name: str) -> str:
    """The last part of a path, lower-case, letters and digits only: accounts/…/models/qwen2p5-7b → qwen257b."""
    last = name.strip().rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9]", "", FIREWORKS_POINT.sub(".", last))


class ModelIndex:
    """Finds repositories among `model_ids`."""

    def __init__(self, model_ids: Iterable[str]) -> None:
        ids = sorted(set(model_ids))
        self._exact = {i.lower(): i for i in ids}
        counts = Counter(plain_name(i) for i in ids)
        self._plain = {plain_name(i): i for i in ids if counts[plain_name(i)] == 1}

    def find(self, name: str) -> str | None:
        """The repository of a raw name; None where there is none, or several of that name."""
        return self._exact.get(name.strip().lower()) or self._plain.get(plain_name(name))
