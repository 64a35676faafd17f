"""Eras of engine versions, as engines and benchmarks write them."""

from datetime import date

import polars as pl
import pytest

from fitmart.estimator.speed_era import era

ERAS = pl.DataFrame(
    {
        "engine_id": ["vllm", "sglang", "llama.cpp"],
        "since_version": ["0.8.0", "0.5.0", "b4400"],
        "since_on": [date(2025, 3, 18), date(2025, 8, 1), date(2025, 1, 1)],
    }
)


@pytest.mark.parametrize(
    ("engine", "version", "want"),
    [
        ("vllm", None, "current"),
        ("vllm", "0.23.0", "current"),
        ("vllm", "0.8.0", "current"),
        ("vllm", "0.9.1.dev289+g89b", "current"),
        ("vllm", "0.7.3", "old"),
        ("vllm", "0.6.x (2024-11)", "old"),
        ("vllm", "2024 (paper arXiv 2411.00136)", "old"),
        ("vllm", "2024-04", "old"),
        ("vllm", "2025-06", "current"),
        ("vllm", "nightly", "current"),
        ("sglang", "0.4.6.post1", "old"),
        ("sglang", "0.5.2", "current"),
        ("llama.cpp", "2024-05", "old"),
        ("llama.cpp", "2026-08", "current"),
        ("llama.cpp", "b9193", "current"),
        ("llama.cpp", "4399", "old"),
        ("llama.cpp", "b3047-9-gabcdef", "old"),
        ("llama.cpp", "6918 (2f1a3b)", "current"),
        ("llama.cpp", "ROCm 6.4.4", "current"),
        ("llama.cpp", "llama.cpp/ollama 2025", "current"),
        ("mlx", "2024-05", "current"),  # an engine of one era
    ],
)
def test_the_version_as_written_picks_the_era(engine: str, version: str | None, want: str) -> None:
    rows = pl.DataFrame(
        {"engine_id": [engine], "engine_version": [version]},
        schema={"engine_id": pl.String, "engine_version": pl.String},
    )
    assert rows.select(era(pl.col("engine_id"), pl.col("engine_version"), ERAS)).item() == want
