"""Verdicts: the first thing that stands in the way, and tight only where the band straddles the need."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.estimator.fit import LIMITS, VERDICTS, with_verdict

ROW = {
    "support": "native",
    "limited_by": None,
    "context_tokens": 8192,
    "extended_context_tokens": 32768,
    "kv_available_bytes": 10,
    "kv_available_bytes_low": 8,
    "kv_available_bytes_high": 12,
    "sequence_kv_bytes": 5,
    "gpu_count": 2,
}

AVAILABLE = ("kv_available_bytes", "kv_available_bytes_low", "kv_available_bytes_high")


def judge(**cells):
    schema = {k: pl.String if isinstance(v, str) or v is None else pl.Int64 for k, v in ROW.items()}
    row = with_verdict(pl.DataFrame([ROW | cells], schema=schema)).row(0, named=True)
    return row["verdict"], row["limited_by"], row["headroom_bytes"]


@pytest.mark.parametrize(
    ("cells", "verdict", "limit", "headroom"),
    [
        ({}, "fits", None, 10),
        ({"sequence_kv_bytes": 8}, "fits", None, 4),
        ({"sequence_kv_bytes": 9}, "tight", None, 2),
        ({"sequence_kv_bytes": 12}, "tight", None, -4),
        ({"sequence_kv_bytes": 13}, "no", "kv_cache", -6),
        ({"kv_available_bytes": -5, "kv_available_bytes_low": -9, "kv_available_bytes_high": 0}, "no", "weights", -20),
        ({"context_tokens": 65536}, "no", "context", 10),
        ({"limited_by": "tp_divisibility"}, "no", "tp_divisibility", 10),
        ({"limited_by": "unsupported"}, "no", "unsupported", 10),
        ({"support": "unsupported", "limited_by": "tp_divisibility"}, "no", "unsupported", 10),
        ({"support": "unknown"}, "unknown", "unknown", 10),
        # unknown support does not hide what memory says
        ({"support": "unknown", "sequence_kv_bytes": 13}, "no", "kv_cache", -6),
        (dict.fromkeys(AVAILABLE), "unknown", "unknown", None),
        ({"extended_context_tokens": None}, "fits", None, 10),
    ],
)  # fmt: skip
def test_verdict(cells, verdict, limit, headroom):
    assert judge(**cells) == (verdict, limit, headroom)


sizes = st.integers(-100, 100)


@given(low=sizes, spread=st.integers(0, 50), need=st.integers(0, 100), more=st.integers(0, 50))
def test_less_need_never_makes_it_worse(low, spread, need, more):
    cells = {"kv_available_bytes_low": low, "kv_available_bytes": low, "kv_available_bytes_high": low + spread}
    less, most = (judge(**cells, sequence_kv_bytes=n)[0] for n in (need, need + more))
    assert VERDICTS.index(less) <= VERDICTS.index(most)


def test_the_words_are_the_catalog_s():
    assert VERDICTS == ("fits", "tight", "no", "unknown")
    assert set(LIMITS) == {"weights", "kv_cache", "context", "tp_divisibility", "unsupported", "unknown"}
