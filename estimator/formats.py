"""Storage formats: how many bytes a matrix of `rows` × `columns` takes in each.

A format stores every element in `element_bits`, plus `tile_bits` for each tile of `tile_rows` × `tile_columns` elements
(scales, zero points, or a whole packed block), plus bits per row, per column and per tensor. A partial tile counts as a
whole one, as it does on disk. Ids read `<kind>[-g<group>][-sym|-asym][-actorder]`; ggml types are `ggml-<type>`.

Sources: the layouts of safetensors checkpoints as their writers define them (AutoAWQ, GPTQModel, compressed-tensors,
bitsandbytes, NVIDIA ModelOpt, MLX, ExLlamaV2/V3, TorchAO); ggml block sizes from the `gguf` package.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import polars as pl
from gguf import GGML_QUANT_SIZES

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.units import BITS_PER_BYTE

WHOLE = 2**40  # a tile that spans the whole axis: larger than any axis


class UnknownFormatError(FitmartError):
    """A storage format id that is not in FORMATS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One storage format; all sizes in bits."""

    format_id: str
    element_bits: float
    tile_bits: float = 0.0
    tile_rows: int = WHOLE
    tile_columns: int = WHOLE
    row_bits: float = 0.0
    column_bits: float = 0.0
    tensor_bits: float = 0.0
    memory_format: str = ""  # format after loading; empty: the same

    def as_row(self) -> dict[str, object]:
        return asdict(self) | {"memory_format": self.memory_format or self.format_id}


_GROUPS = (16, 32, 64, 128, 256, 512, 1024)
_FLOAT32, _FLOAT16, _INT32, _INT64 = 32, 16, 32, 64


def _in_groups(
    format_id: str,
    *,
    element_bits: float,
    group: int,
    group_bits: float,
    column_bits: float = 0.0,
    tensor_bits: float = 0.0,
    memory_format: str = "",
) -> Format:
    """A format whose scales stand for `group` neighbours of one row."""
    return Format(
        format_id=format_id,
        element_bits=element_bits,
        tile_bits=group_bits,
        tile_rows=1,
        tile_columns=group,
        column_bits=column_bits,
        tensor_bits=tensor_bits,
        memory_format=memory_format,
    )


def _plain() -> Iterator[Format]:
    for format_id, bits in (("fp32", 32), ("bf16", 16), ("fp16", 16), ("fp8", 8), ("int8", 8)):
        yield Format(format_id=format_id, element_bits=bits)


def _eight_bit() -> Iterator[Format]:
    yield Format(format_id="fp8-tensor", element_bits=8, tensor_bits=2 * _FLOAT32)  # weight_scale, input_scale
    yield Format(format_id="fp8-channel", element_bits=8, row_bits=_FLOAT32)
    yield Format(format_id="fp8-block128", element_bits=8, tile_bits=_FLOAT32, tile_rows=128, tile_columns=128)
    yield Format(format_id="int8-channel", element_bits=8, row_bits=_FLOAT32)
    yield Format(format_id="int8-tensor", element_bits=8, tensor_bits=2 * _FLOAT32)
    yield Format(format_id="int8-bnb", element_bits=8, row_bits=_FLOAT32)  # LLM.int8(): one absmax a row
    yield _in_groups("mxfp8", element_bits=8, group=32, group_bits=8)  # a shared exponent


def _grouped_integers() -> Iterator[Format]:
    """int<bits>-g<group>: packed along a row, a 16-bit scale a group; `-asym` adds a packed zero point.

    `gptq<bits>-…` is what GPTQ writers store: zero points for symmetric quantization too and an int32 group index for
    each column. Engines drop both at load unless the activation order (`-actorder`) needs the index.
    """
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (*_GROUPS, WHOLE):
            name = "channel" if group == WHOLE else f"g{group}"
            zeroed = _FLOAT16 + bits
            for symmetry, kept in (("sym", _FLOAT16), ("asym", zeroed)):
                packed, gptq = f"int{bits}-{name}-{symmetry}", f"gptq{bits}-{name}-{symmetry}"
                ordered = f"{packed}-actorder"
                shape = 2 * _INT64 if symmetry == "sym" else 0  # compressed-tensors: weight_shape
                yield _in_groups(packed, element_bits=bits, group=group, group_bits=kept, tensor_bits=shape)
                yield _in_groups(ordered, element_bits=bits, group=group, group_bits=kept, column_bits=_INT32)
                for stored, loaded in ((gptq, packed), (f"{gptq}-actorder", ordered)):
                    yield _in_groups(
                        stored,
                        element_bits=bits,
                        group=group,
                        group_bits=zeroed,
                        column_bits=_INT32,
                        memory_format=loaded,
                    )


def _four_bit_floats() -> Iterator[Format]:
    yield _in_groups("nf4-g64", element_bits=4, group=64, group_bits=_FLOAT32)
    # Double quantization: the scales in 8 bits, with a float32 for each 256 of them.
    yield _in_groups("nf4-g64-dq", element_bits=4, group=64, group_bits=8 + _FLOAT32 / 256)
    yield _in_groups("mxfp4", element_bits=4, group=32, group_bits=8)
    # weight_scale_2 and input_scale are float32 scalars
    yield _in_groups("nvfp4-g16", element_bits=4, group=16, group_bits=8, tensor_bits=2 * _FLOAT32)


def _other_engines() -> Iterator[Format]:
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            # MLX packs whole groups: a 16-bit scale and a 16-bit bias each
            packed = bits * group + 2 * _FLOAT16
            yield _in_groups(f"mlx{bits}-g{group}", element_bits=0, group=group, group_bits=packed)
    for hundredths in range(200, 805, 5):
        mean = hundredths / 100
        # ExLlamaV2 chooses a mix per matrix that meets the wanted mean, scales included.
        yield Format(format_id=f"exl2-{mean:g}", element_bits=mean)
        # ExLlamaV3: trellis codes, 16-bit scales of each input and each output channel.
        yield Format(format_id=f"exl3-{mean:g}", element_bits=mean, row_bits=_FLOAT16, column_bits=_FLOAT16)
    for group in (32, 64, 128, 256):
        for engine in ("torchao", "hqq"):  # a 16-bit scale and a 16-bit zero a group
            yield _in_groups(f"{engine}-int4-g{group}", element_bits=4, group=group, group_bits=2 * _FLOAT16)


def _ggml() -> Iterator[Format]:
    for kind, (elements, size) in GGML_QUANT_SIZES.items():
        block = size * BITS_PER_BYTE
        yield _in_groups(ggml_format(kind.name), element_bits=0, group=elements, group_bits=block)


def ggml_format(ggml_type: str) -> str:
    """The format id of a ggml type name: `Q4_K` → `ggml-q4_k`."""
    return f"ggml-{ggml_type.lower()}"


_SCHEMA = pl.Schema(
    {
        "format_id": pl.String,
        "element_bits": pl.Float64,
        "tile_bits": pl.Float64,
        "tile_rows": pl.Int64,
        "tile_columns": pl.Int64,
        "row_bits": pl.Float64,
        "column_bits": pl.Float64,
        "tensor_bits": pl.Float64,
        "memory_format": pl.String,
    }
)


def _registry() -> pl.DataFrame:
    kinds = (_plain, _eight_bit, _grouped_integers, _four_bit_floats, _other_engines, _ggml)
    return pl.DataFrame([f.as_row() for kind in kinds for f in kind()], schema=_SCHEMA)


FORMATS = _registry()
"""One row a format: the sizes of `Format`, in bits."""

_SIZES = tuple(name for name in _SCHEMA if name not in ("format_id", "memory_format"))


def _ceil_div(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return (a + b - 1) // b


def bytes_expr(rows: pl.Expr, columns: pl.Expr, *, prefix: str = "") -> pl.Expr:
    """Bytes (Int64) of one `rows` × `columns` matrix; the format's sizes stand beside in columns `<prefix><size>`.

    Exact: all terms are whole bits below 2**53, rounded up to a byte once.
    """
    size = {name: pl.col(f"{prefix}{name}") for name in _SIZES}
    tiles = _ceil_div(rows, size["tile_rows"]) * _ceil_div(columns, size["tile_columns"])
    bits = (
        rows * columns * size["element_bits"]
        + tiles * size["tile_bits"]
        + rows * size["row_bits"]
        + columns * size["column_bits"]
        + size["tensor_bits"]
    )
    return (bits / BITS_PER_BYTE).ceil().cast(pl.Int64)


def with_bytes(
    frame: pl.DataFrame, *, rows: str = "rows", columns: str = "columns", format_id: str = "format", into: str = "bytes"
) -> pl.DataFrame:
    """`frame` with the bytes of each row's matrix in its format, as column `into`; raises UnknownFormatError."""
    sizes = FORMATS.select(pl.col("format_id").alias(format_id), *(pl.col(n).alias(f"_{n}") for n in _SIZES))
    joined = frame.join(sizes, on=format_id, how="left", validate="m:1", maintain_order="left")
    unknown = joined.filter(pl.col("_element_bits").is_null())[format_id].unique().sort()
    if unknown.len():
        raise UnknownFormatError(f"unknown storage format {', '.join(str(f) for f in unknown)}")
    sized = joined.with_columns(bytes_expr(pl.col(rows), pl.col(columns), prefix="_").alias(into))
    return sized.drop(f"_{n}" for n in _SIZES)


def bits_per_weight(format_id: str) -> float:
    """Nominal bits a weight, scales included, of a large matrix; raises UnknownFormatError."""
    side = 2**15
    frame = pl.DataFrame({"rows": [side], "columns": [side], "format": [format_id]})
    return round(with_bytes(frame)["bytes"][0] * BITS_PER_BYTE / side**2, 3)
