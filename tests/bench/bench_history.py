"""A year of hourly looks at a price list: what it adds to a build, and to the disk after compaction.

Scaled down it runs with `make bench`; the year itself with

    python tests/bench/bench_history.py DATA_DIR [--polls 8760] [--offers 5000] [--changed-polls 0.1] [--changed 0.1]

in a folder that holds a whole catalog. One poll in ten finds another list, in which a tenth of the prices has moved.
"""

import argparse
import random
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fitmart.flows.compact import compact
from fitmart.flows.landing import land
from fitmart.flows.price_tables import read_price_tables
from fitmart.flows.runs import record_run
from fitmart.flows.sources.contract import Payload, SourceRun
from fitmart.flows.sources.prices import skypilot
from fitmart.warehouse.reference import load_reference

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
CARDS = (("H100", 81920, 3.5), ("A100-80GB", 81920, 1.9), ("L4", 24576, 0.7), ("L40S", 49152, 1.2), ("T4", 16384, 0.4))
NAME = "lambda/vms.csv"


class PriceList:
    """A table as SkyPilot publishes it, with prices that move."""

    def __init__(self, offers: int, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._rows = []
        for number in range(offers // 2):  # a row is two offers: on demand and spot
            card, mib, usd = CARDS[number % len(CARDS)]
            count = (1, 2, 4, 8)[number // len(CARDS) % 4]
            info = f"\"{{'Gpus': [{{'Name': '{card}', 'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}\""
            name = f"gpu_{count}x_{card.lower()}_{number % 97}"
            start = f"{name},{card},{count}.0,{26 * count},{200 * count}"
            self._rows.append(((start, f"region-{number},{info}"), [usd * count, usd * count * 0.5]))

    def move(self, share: float) -> None:
        """Move that share of the prices by up to 2 %."""
        for _ in range(int(len(self._rows) * 2 * share)):
            _, prices = self._random.choice(self._rows)
            side = self._random.randrange(2)
            prices[side] = round(prices[side] * self._random.uniform(0.98, 1.02), 4)

    def payload(self) -> Payload:
        lines = (f"{start},{price},{end},{spot}" for (start, end), (price, spot) in self._rows)
        return Payload(name=NAME, content="\n".join((HEADER, *lines)).encode(), url="https://example.org/vms.csv")


def land_year(landing_dir: Path, *, polls: int, offers: int, changed_polls: float, changed: float) -> int:
    """Land hourly polls up to now; how many of them were new."""
    prices, added = PriceList(offers), 0
    begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=polls)
    every = round(1 / changed_polls)
    for hour in range(polls):
        seen_at = begin + timedelta(hours=hour)
        if hour % every == 0:
            prices.move(changed if hour else 0)
            added += land(landing_dir, skypilot.SOURCE_ID, [prices.payload()], seen_at).added
        end = seen_at + timedelta(seconds=2)
        status = "ok" if hour % every == 0 else "unchanged"
        record_run(
            landing_dir, SourceRun(source_id=skypilot.SOURCE_ID, started_at=seen_at, ended_at=end, status=status)
        )
    return added


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def timed(seconds: dict[str, float], what: str):
    started = time.monotonic()
    yield
    seconds[what] = time.monotonic() - started


def measure(data_dir: Path, **year: float) -> dict[str, float]:
    """Seconds and bytes of a year of polls in `data_dir`."""
    landing_dir, found = data_dir / "landing", {}
    reference, now = load_reference(), datetime.now(UTC)

    def read():
        return read_price_tables(landing_dir, [], reference, now)

    with timed(found, "prices without, s"):
        before = read().frames["offer_history"].height
    with timed(found, "landing, s"):
        found["new polls"] = land_year(landing_dir, **year)
    with timed(found, "compaction, s"):
        compact(landing_dir)
    found["landing, MB"] = size(landing_dir) / 1e6
    with timed(found, "prices, all parsed now, s"):
        tables = read()
    found["spans"] = tables.frames["offer_history"].height - before
    with timed(found, "prices, nothing new, s"):
        again = read()
    assert again.frames["offer_history"].equals(tables.frames["offer_history"])
    last = PriceList(int(year["offers"]), seed=8)
    land(landing_dir, skypilot.SOURCE_ID, [last.payload()], now - timedelta(seconds=1))
    with timed(found, "prices, one new poll, s"):
        read()
    found["cache, MB"] = size(data_dir / "observations") / 1e6
    return found


def test_a_month_of_polls(tmp_path):
    found = measure(tmp_path, polls=720, offers=500, changed_polls=0.1, changed=0.1)
    print({what: round(value, 2) for what, value in found.items()})
    assert found["new polls"] == 72
    assert found["spans"] > 500 + 71 * 40
    assert found["prices, one new poll, s"] < found["prices, all parsed now, s"] / 2
    assert found["landing, MB"] + found["cache, MB"] < 5


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--polls", type=int, default=8760)
    parser.add_argument("--offers", type=int, default=5000)
    parser.add_argument("--changed-polls", type=float, default=0.1)
    parser.add_argument("--changed", type=float, default=0.1)
    asked = vars(parser.parse_args())
    for what, value in measure(asked.pop("data_dir"), **asked).items():
        print(f"{what:>26} {value:12,.2f}")
