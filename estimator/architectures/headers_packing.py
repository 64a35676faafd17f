"""Packed tensors back to the matrices they stand for: rows, columns and storage format of each.

A quantized matrix is several tensors under one stem (`q_proj.qweight`, `.qzeros`, `.scales`). The main one and its
companions together tell the logical shape; companions are no parameters. Layouts as their writers define them: AutoAWQ,
GPTQModel, compressed-tensors, bitsandbytes, NVIDIA ModelOpt, gpt-oss, DeepSeek, MLX, ExLlamaV2/V3.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from fitmart.estimator.architectures.headers_records import HeaderError
from fitmart.estimator.architectures.headers_safetensors import DTYPE_BITS
from fitmart.estimator.formats import FORMATS, ggml_format

INT32_BITS = 32
NF4_BLOCK = 64
_FORMAT_IDS = frozenset(FORMATS["format_id"])
_FLOAT8 = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
_PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", **dict.fromkeys(_FLOAT8, "fp8"), "I8": "int8"}

# What a companion is called behind its stem, longest first.
_COMPANIONS = (
    r"weight\.nested_absmax|weight\.nested_quant_map|weight\.absmax|weight\.quant_map|weight\.quant_state\.[a-z_0-9]+"
    r"|weight_scale_inv|weight_scale_2|weight_global_scale|weight_zero_point|weight_shape|weight_g_idx|weight_format"
    r"|weight_scale|input_global_scale|input_scale|input_zero_point|activation_scale|output_scale"
    r"|scale_inv|scales|scale|biases|qzeros|g_idx|SCB|q_scale_max|q_scale|q_groups|q_group_map|q_invperm|q_perm"
    r"|suh|svh|su|sv|mcg|mul1"
)
_MAINS = "qweight|weight_packed|q_weight|trellis|blocks|weight"
_PART = re.compile(rf"^(.+?)(?:\.({_MAINS}|{_COMPANIONS})|_(blocks|scales|weight_scale\w*|scale_inv|input_scale))$")
# Scales of the KV cache and of activations: no parameters, whatever stands beside them.
_LOOSE_SCALE = re.compile(r"[._](k_scale|v_scale|q_scale|kv_scale|prob_scale|input_scale|input_global_scale)$")


@dataclass(frozen=True, slots=True)
class Matrix:
    """What one stored group stands for: `copies` matrices in one tensor, and their format (None: no known one)."""

    rows: int
    columns: int = 1
    copies: int = 1
    stored_format: str | None = None

    @property
    def params(self) -> int:
        return self.rows * self.columns * self.copies


@dataclass(frozen=True, slots=True)
class Part:
    """A stored tensor as one of its stem's parts."""

    dtype: str
    shape: tuple[int, ...]


Parts = Mapping[str, Part]


MAIN_PARTS = (*_MAINS.split("|"), "")
_BARE = ("blocks", "")  # mains whose logical tensor is called like the stem


def logical_name(stem: str, main: str) -> str:
    """What the unpacked tensor is called."""
    return stem if main in _BARE else f"{stem}.weight"


def split(name: str) -> tuple[str, str]:
    """(stem, part) of a folded name; part is "" for what is neither a main tensor nor a companion."""
    found = _PART.match(name)
    return (found[1], found[2] or found[3]) if found else (name, "")


def main_of(parts: Parts) -> str | None:
    """Which part holds the quantized values, or None where every part is a tensor of its own."""
    for name in MAIN_PARTS:
        if name in parts and (layout_of(name, parts) is not None):
            return name
    return None


def is_loose_scale(name: str) -> bool:
    """Whether a tensor without a quantized one beside it is a scale all the same."""
    return _LOOSE_SCALE.search(name) is not None


def plain(name: str, part: Part) -> Matrix:
    """A tensor stored as it is. Experts stacked in one tensor are copies; of a convolution the kernel is folded."""
    shape = part.shape
    if part.dtype not in _PLAIN and ggml_format(part.dtype) in _FORMAT_IDS:
        form: str | None = ggml_format(part.dtype)
    else:
        form = _PLAIN.get(part.dtype)
    if len(shape) == 3 and re.search(r"expert|_exps", name):
        return Matrix(shape[1], shape[2], shape[0], form)
    if len(shape) < 2:
        return Matrix(prod(shape), 1, 1, form)
    return Matrix(shape[0], prod(shape[1:]), 1, form)


def unpack(stem: str, main: str, parts: Parts) -> Matrix:
    """The matrix of a quantized stem; HeaderError where its parts contradict each other."""
    layout = layout_of(main, parts)
    try:
        matrix = layout(parts[main], parts) if layout else plain(stem, parts[main])
    except (KeyError, IndexError, ZeroDivisionError, ValueError):
        shapes = ", ".join(f"{part or 'tensor'} {list(p.shape)}" for part, p in parts.items())
        raise HeaderError(f"{stem}: cannot be unpacked from {shapes}") from None
    if matrix.stored_format is not None and matrix.stored_format not in _FORMAT_IDS:
        raise HeaderError(f"{stem}: stored as {matrix.stored_format}, a format that is not known")
    return matrix


Layout = Callable[[Part, Parts], Matrix]


def layout_of(main: str, parts: Parts) -> Layout | None:
    """The layout of a main part beside its companions; None: it is stored plainly."""
    part, beside = parts[main], parts.keys()
    if main == "qweight":
        return _int32_columns if "scales" in beside else None
    if main == "weight_packed":
        return _compressed if "weight_scale" in beside else None
    if main == "blocks":
        return _mx_blocks if "scales" in beside else None
    if main == "q_weight":
        return _exl2 if beside & {"q_invperm", "q_perm"} else None
    if main == "trellis":
        return _exl3
    if part.dtype in ("U8", "F4"):
        if "weight.absmax" in beside:
            return _nf4
        return _four_bit_float if beside & {"weight_scale", "scale", "scales"} else None
    if part.dtype == "U32" and "scales" in beside:
        return _mlx
    if part.dtype == "I8":
        if "scale" in beside and parts["scale"].dtype == "F8_E8M0":
            return _four_bit_float
        return _int8 if beside & {"SCB", "weight_scale", "scale"} else None
    return _fp8 if part.dtype in _FLOAT8 else None


def _experts(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(copies, rows, columns) of a matrix, or of a stack of them."""
    *stack, rows, columns = shape
    return prod(stack), rows, columns


def _group(columns: int, groups: int) -> str:
    size = -(-columns // groups)
    return "channel" if groups == 1 else f"g{size}"


def _int32_columns(part: Part, parts: Parts) -> Matrix:
    """AWQ packs along the outputs [in, out × bits / 32], GPTQ along the inputs [in × bits / 32, out]."""
    groups, outputs = parts["scales"].shape
    if "qzeros" in parts:
        bits = INT32_BITS * parts["qzeros"].shape[1] // outputs
    elif part.shape[1] != outputs:
        bits = INT32_BITS * part.shape[1] // outputs
    else:
        bits = INT32_BITS * part.shape[0] // parts["g_idx"].shape[0]
    if part.shape[1] == outputs:
        inputs = INT32_BITS * part.shape[0] // bits
        return Matrix(outputs, inputs, 1, f"gptq{bits}-{_group(inputs, groups)}-sym")
    inputs = part.shape[0]
    symmetry = "asym" if "qzeros" in parts else "sym"
    return Matrix(outputs, inputs, 1, f"int{bits}-{_group(inputs, groups)}-{symmetry}")


def _compressed(part: Part, parts: Parts) -> Matrix:
    """compressed-tensors: int32 words along a row, or two 4-bit floats a byte."""
    if part.dtype == "U8":
        return _four_bit_float(part, parts)
    copies, rows, words = _experts(part.shape)
    groups = parts["weight_scale"].shape[-1]
    # Widths are whole words: the scales' groups and the words leave the bits; four of them are by far the usual.
    bits, columns = _word_bits(words, groups)
    symmetry = "asym" if "weight_zero_point" in parts else "sym"
    order = "-actorder" if "weight_g_idx" in parts else ""
    return Matrix(rows, columns, copies, f"int{bits}-{_group(columns, groups)}-{symmetry}{order}")


def _word_bits(words: int, groups: int) -> tuple[int, int]:
    """(bits, columns): the number of bits whose group size is one in use."""
    for bits in (4, 8):
        columns = words * INT32_BITS // bits
        if groups > 1 and columns % groups == 0 and columns // groups in (32, 64, 128):
            return bits, columns
    bits = 8 if groups == 1 else 4
    return bits, words * INT32_BITS // bits


def _mx_blocks(part: Part, parts: Parts) -> Matrix:
    """gpt-oss: [experts, rows, groups, 16 bytes of two values], an exponent a group of 32."""
    *stack, rows, groups, size = part.shape
    return Matrix(rows, groups * size * 2, prod(stack), "mxfp4")


def _four_bit_float(part: Part, parts: Parts) -> Matrix:
    """Two values a byte. A scale for 16 is NVFP4 (with a float32 for all), one for 32 MXFP4."""
    copies, rows, columns = _experts(part.shape)
    if part.dtype != "F4":
        columns *= 2
    scale = next(parts[name] for name in ("weight_scale", "scale", "scales") if name in parts)
    size = columns // scale.shape[-1]
    return Matrix(rows, columns, copies, {16: "nvfp4-g16", 32: "mxfp4"}[size])


def _nf4(part: Part, parts: Parts) -> Matrix:
    """bitsandbytes flattens the matrix: its shape is in the values of quant_state, which no header holds."""
    form = "nf4-g64-dq" if "weight.nested_absmax" in parts else "nf4-g64"
    rows, rest = divmod(prod(part.shape) * 2, NF4_BLOCK)
    return Matrix(rows + (rest > 0), NF4_BLOCK, 1, form)


def _int8(part: Part, parts: Parts) -> Matrix:
    copies, rows, columns = _experts(part.shape)
    if "SCB" in parts:
        return Matrix(rows, columns, copies, "int8-bnb")
    scale = next(parts[name] for name in ("weight_scale", "scale") if name in parts)
    form = "int8-tensor" if prod(scale.shape) in (1, copies) else "int8-channel"
    return Matrix(rows, columns, copies, form)


def _fp8(part: Part, parts: Parts) -> Matrix:
    """One scale a tensor, a row, a 128 × 128 block, or (microscaling) 32 values of a row."""
    matrix = plain("experts" if len(part.shape) == 3 else "", part)
    names = ("weight_scale_inv", "weight_scale", "scale_inv", "scale")
    scale = next((parts[name] for name in names if name in parts), None)
    if scale is None or len(part.shape) < 2:
        return matrix
    count, rows, columns = prod(scale.shape), matrix.rows, matrix.columns
    if count in (1, matrix.copies):
        form = "fp8-tensor"
    elif scale.shape[-1] == -(-columns // 32) and scale.shape[-2] == rows:
        form = "mxfp8"
    elif count == rows * matrix.copies:
        form = "fp8-channel"
    else:
        form = "fp8-block128" if scale.shape[-2:] == (-(-rows // 128), -(-columns // 128)) else "fp8"
    return Matrix(rows, columns, matrix.copies, form)


def _mlx(part: Part, parts: Parts) -> Matrix:
    """MLX packs whole groups: bits × group size = 32 × words / groups. Groups are of 64 unless that gives no width."""
    copies, rows, words = _experts(part.shape)
    groups = parts["scales"].shape[-1]
    product = INT32_BITS * words // groups
    if "biases" not in parts:
        return Matrix(rows, groups * 32, copies, {128: "mxfp4", 256: "mxfp8"}[product])
    size = next(size for size in (64, 32, 128) if product % size == 0 and product // size in (2, 3, 4, 5, 6, 8))
    return Matrix(rows, groups * size, copies, f"mlx{product // size}-g{size}")


def _exl2(part: Part, parts: Parts) -> Matrix:
    """ExLlamaV2: the mean bits follow from the bytes, scales included; the order of the inputs tells their number."""
    inputs = parts["q_invperm" if "q_invperm" in parts else "q_perm"].shape[0]
    outputs = part.shape[1]
    bits = sum(prod(p.shape) * DTYPE_BITS[p.dtype] for p in parts.values())
    return Matrix(outputs, inputs, 1, f"exl2-{_twentieth(bits / (inputs * outputs))}")


def _exl3(part: Part, parts: Parts) -> Matrix:
    """ExLlamaV3: tiles of 16 × 16, each in 16 × bits words of 16 bits."""
    inputs, outputs, words = part.shape
    return Matrix(outputs * 16, inputs * 16, 1, f"exl3-{_twentieth(words / 16)}")


def _twentieth(bits: float) -> str:
    return f"{min(max(round(bits * 20) / 20, 2.0), 8.0):g}"
