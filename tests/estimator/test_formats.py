"""Bytes of single matrices; expected values are worked out in the comments from each format's definition."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.estimator.formats import FORMATS, UnknownFormatError, bits_per_weight, ggml_format, with_bytes


def one(format_id: str, rows: int, columns: int) -> int:
    frame = pl.DataFrame({"rows": [rows], "columns": [columns], "format": [format_id]})
    return int(with_bytes(frame)["bytes"][0])


@pytest.mark.parametrize(
    ("format_id", "rows", "columns", "expected"),
    [
        ("bf16", 8192, 29568, 8192 * 29568 * 2),
        ("fp32", 3, 1, 12),
        ("fp8-tensor", 4096, 4096, 4096 * 4096 + 8),  # weight_scale and input_scale
        ("fp8-channel", 4096, 11008, 4096 * 11008 + 4096 * 4),
        ("fp8-block128", 2048, 576, 2048 * 576 + 16 * 5 * 4),  # 576 = 4.5 blocks: five scales
        ("int8-channel", 100, 200, 20_000 + 400),
        ("int4-g128-asym", 4096, 4096, 4096 * 4096 // 2 + 4096 * 32 * 2 + 4096 * 32 // 2),  # qweight, scales, qzeros
        ("int4-g128-sym", 4096, 4096, 4096 * 4096 // 2 + 4096 * 32 * 2 + 16),  # packed, scale, shape
        ("gptq4-g128-sym", 4096, 4096, 4096 * 4096 // 2 + 4096 * 32 * 2 + 4096 * 32 // 2 + 4096 * 4),  # and g_idx
        ("int4-g128-sym", 10, 200, 1000 + 10 * 2 * 2 + 16),  # 200 columns: one group and a part of one
        ("nf4-g64", 64, 64, 2048 + 64 * 4),
        ("nf4-g64-dq", 256, 64, 8192 + 256 + 4),  # 256 scales of a byte, one float32 for them
        ("mxfp4", 2880, 2880, 2880 * 2880 // 2 + 2880 * 90),
        ("nvfp4-g16", 128, 64, 4096 + 128 * 4 + 8),
        ("mlx4-g64", 1000, 640, 1000 * 10 * 36),  # a group: 64 × 4 bits and two float16
        ("exl3-4", 512, 1024, 512 * 1024 // 2 + 2 * (512 + 1024)),
        ("ggml-q4_k", 8192, 8192, 8192 * 32 * 144),
        ("ggml-q6_k", 152064, 8192, 152064 * 32 * 210),
        ("ggml-q8_0", 10, 40, 10 * 2 * 34),  # a row never ends within a block
        ("ggml-f32", 7, 1, 28),
    ],
)
def test_bytes(format_id: str, rows: int, columns: int, expected: int) -> None:
    assert one(format_id, rows, columns) == expected


@pytest.mark.parametrize(
    ("format_id", "bits"),
    [
        ("mxfp4", 4.25), ("nvfp4-g16", 4.5), ("int4-g128-asym", 4.156), ("nf4-g64-dq", 4.127), ("mlx8-g64", 8.5),
        ("ggml-q4_k", 4.5), ("ggml-iq4_xs", 4.25), ("ggml-q6_k", 6.562), ("ggml-q2_k", 2.625), ("exl2-4.65", 4.65),
    ],
)  # fmt: skip
def test_nominal_bits(format_id: str, bits: float) -> None:
    assert bits_per_weight(format_id) == bits


def test_ids_are_unique() -> None:
    assert FORMATS["format_id"].is_unique().all()


def test_memory_formats_exist() -> None:
    assert set(FORMATS["memory_format"]) <= set(FORMATS["format_id"])


def test_symmetric_gptq_loses_its_zeros_at_load() -> None:
    loaded = dict(FORMATS.select("format_id", "memory_format").iter_rows())
    assert loaded["gptq4-g128-sym"] == "int4-g128-sym"
    assert loaded["gptq4-g128-sym-actorder"] == "int4-g128-sym-actorder"


def test_unknown_format_is_named() -> None:
    with pytest.raises(UnknownFormatError, match="unknown storage format int5-g7"):
        one("int5-g7", 1, 1)


@given(st.sampled_from(FORMATS["format_id"].to_list()), st.integers(1, 40), st.integers(1, 300))
def test_more_elements_never_take_less(format_id: str, rows: int, columns: int) -> None:
    size = one(format_id, rows, columns)
    assert 0 < size <= one(format_id, rows + 1, columns)
    assert size <= one(format_id, rows, columns + 1)


@given(st.sampled_from(["Q4_K", "Q8_0", "IQ4_XS", "MXFP4"]), st.integers(1, 1000), st.integers(1, 64))
def test_stacked_rows_add_up(ggml_type: str, rows: int, copies: int) -> None:
    assert one(ggml_format(ggml_type), rows * copies, 2048) == copies * one(ggml_format(ggml_type), rows, 2048)
