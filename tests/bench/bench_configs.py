"""Parsing a config.json into its anatomy: the time of one, beside reading its JSON."""

import json
import statistics
import time
from collections.abc import Callable

from published_configs import CONFIGS

from fitmart.estimator.architectures import parse_config

LIMIT_MS = 2.0
REPEATS = 5


def best_ms(call: Callable[[], object]) -> float:
    """The best of some calls: the machine's other work is not the question's."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def test_a_config_is_parsed_in_two_milliseconds():
    parsed = [best_ms(lambda i=i, c=c: parse_config(i, c)) for i, c in CONFIGS.items()]
    read = [best_ms(lambda text=text: json.loads(text)) for text in map(json.dumps, CONFIGS.values())]
    median, worst = statistics.median(parsed), max(parsed)
    print(
        f"\n{len(parsed)} configs: median {median:.2f} ms, worst {worst:.2f} ms, "
        f"{median / statistics.median(read):.0f} × reading the JSON"
    )
    assert median <= LIMIT_MS
