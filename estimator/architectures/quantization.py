"""What a repository stores its tensors in: the dialects of `quantization_config` and of hf_quant_config.json.

Each dialect becomes one default format and patterns of modules that keep their dtype or have another format.
Embeddings, output matrix, norms, routers, convolutions and towers stay unquantized unless a config names them.
Sources: transformers' quantization configs, compressed-tensors, AutoAWQ, GPTQModel, NVIDIA ModelOpt, AutoRound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fitmart.estimator.anatomy import Tensor
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.module_patterns import ModulePatterns

_QUANTIZED = ("attention", "mlp", "experts")
_MTP_KEPT = ("eh_proj", "embed", "head", "norm", "gate.", "router", ".fc.", "linear_proj")
# Linear modules that their publishers' fp8 and int4 recipes leave alone without listing them.
_KEPT = ("weights_proj", "per_layer_model_projection", "conv")
_MODELOPT = {
    "FP8": "fp8-tensor",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8-channel",
    "FP8_PB_WO": "fp8-block128",
    "FP8_PB_REAL": "fp8-block128",
    "MXFP8": "mxfp8",
    "NVFP4": "nvfp4-g16",
    "W4A16_NVFP4": "nvfp4-g16",
    "NVFP4_AWQ": "nvfp4-g16",
    "MXFP4": "mxfp4",
    "W4A16_AWQ": "int4-g128-sym",
    "W4A8_AWQ": "int4-g128-sym",
    "INT4_AWQ": "int4-g128-sym",
    "W8A8_SQ_PER_CHANNEL": "int8-channel",
    "INT8_SQ": "int8-channel",
    "W8A16": "int8-channel",
}
_PRECISIONS = {  # format → precision id
    "fp8-tensor": "fp8",
    "fp8-channel": "fp8",
    "fp8-block128": "fp8-block",
    "mxfp8": "mxfp8",
    "int8-channel": "int8",
    "int8-tensor": "int8",
    "int8-bnb": "bnb-int8",
    "nvfp4-g16": "nvfp4",
    "mxfp4": "mxfp4",
    "nf4-g64": "bnb-nf4-single",
    "nf4-g64-dq": "bnb-nf4",
    "int4-g32-sym": "ct-w4a16-g32",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a repository is stored: `ignored` modules keep their dtype, `formats` go by pattern, others are `default`."""

    precision_id: str
    method: str | None = None
    default: str | None = None
    experts: str | None = None  # format of routed experts where it differs
    only_experts: bool = False
    ignored: ModulePatterns = field(default_factory=lambda: ModulePatterns(()))
    formats: Sequence[tuple[ModulePatterns, str]] = ()
    kv_cache_scheme: str | None = None
    has_mtp: bool = True  # whether prediction layers are quantized as well

    def apply(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """`tensors` with their stored format, split by layers where layers differ."""
        if self.default is None and not self.formats:
            return list(tensors)
        done: list[Tensor] = []
        for tensor in tensors:
            if tensor.stored_format is None and _is_matrix(tensor):
                done += self._split(tensor)
            else:
                done.append(tensor)
        return done

    def precision_of(self, tensors: Iterable[Tensor]) -> str:
        """The precision id; of a mixture, the one that most parameters have."""
        if not self.formats:
            return self.precision_id
        counts: dict[str, int] = {}
        for tensor in tensors:
            if tensor.stored_format:
                counts[tensor.stored_format] = counts.get(tensor.stored_format, 0) + tensor.params
        return (
            _precision(max(counts, key=lambda name: counts[name]), self.precision_id) if counts else self.precision_id
        )

    def _split(self, tensor: Tensor) -> list[Tensor]:
        layers = tensor.layers or (0,)
        chosen: dict[int, str | None] = {}
        default = self._default_of(tensor)
        ignored = self.ignored.layers(tensor.name, layers) if self.ignored else frozenset()
        named = [(patterns.layers(tensor.name, layers), name) for patterns, name in self.formats]
        for layer in layers:
            own = next((name for where, name in named if layer in where), default)
            chosen[layer] = None if layer in ignored else own
        groups: dict[str | None, list[int]] = {}
        for layer, name in chosen.items():
            groups.setdefault(name, []).append(layer)
        if len(groups) == 1:
            return [replace(tensor, stored_format=next(iter(groups)))]
        return [replace(tensor, stored_format=name, layers=tuple(where)) for name, where in groups.items()]

    def _default_of(self, tensor: Tensor) -> str | None:
        """The format of a tensor that no pattern names."""
        is_expert = ".experts." in tensor.name
        if tensor.component == "mtp":
            if not self.has_mtp or any(word in f"{tensor.name}." for word in _MTP_KEPT):
                return None
        elif tensor.component not in _QUANTIZED:
            return None
        if self.only_experts and not is_expert:
            return None
        return (self.experts if is_expert else None) or self.default


def _is_matrix(tensor: Tensor) -> bool:
    """Weights of linear modules; expert blocks have no ".weight"."""
    if tensor.columns == 1 or any(word in tensor.name for word in _KEPT):
        return False
    return tensor.name.endswith(".weight") or (tensor.component == "experts" and not tensor.name.endswith("bias"))


# ---- dialects ------------------------------------------------------------------------------------------------------ #


def _patterns(q: Config, *names: str) -> ModulePatterns:
    return ModulePatterns(str(p) for p in q.items(*names) or [])


def _fp8(q: Config, native: str) -> Quantization:
    """DeepSeek's and transformers' fp8: 128 × 128 blocks, or a scale a tensor; fp4 experts in DeepSeek-V4."""
    block = q.integers("weight_block_size", length=2)
    default = "fp8-block128" if block else "fp8-tensor"
    return Quantization(
        precision_id=_PRECISIONS[default],
        default=default,
        ignored=_patterns(q, "modules_to_not_convert", "ignored_layers"),
        formats=_named_layers(q),
    )


def _fbgemm(q: Config, native: str) -> Quantization:
    return Quantization(precision_id="fp8", default="fp8-channel", ignored=_patterns(q, "modules_to_not_convert"))


def _compressed_tensors(q: Config, native: str) -> Quantization:
    """config_groups: each a scheme and its targets; `Linear` is all linear modules but the ignored."""
    groups = q.get("config_groups", default=None)
    if not isinstance(groups, Mapping) or not groups:
        raise q.fail("quantization_config has no config_groups")
    whole = q.string("format")
    default, formats = None, []
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        name = _scheme(q, weights, str(group.get("format") or whole or ""))
        targets = group.get("targets") or ["Linear"]
        if not isinstance(targets, list):
            raise q.fail(f"quantization_config targets are {str(targets)[:40]}, not a list")
        targets = [str(t) for t in targets]
        if "Linear" in targets:
            default = name
        else:
            formats.append((ModulePatterns(targets), name))
    first = default or (formats[0][1] if formats else None)
    return Quantization(
        precision_id=_precision(first, native),
        default=default,
        formats=[*_named_layers(q), *formats],
        ignored=_patterns(q, "ignore", "exclude_modules"),
        kv_cache_scheme=_kv_scheme(q),
    )


def _scheme(q: Config, weights: Mapping[str, Any], layout: str) -> str:
    bits, group = weights.get("num_bits"), weights.get("group_size")
    strategy = weights.get("strategy") or ("group" if group else "tensor")
    if weights.get("type") == "float":
        if bits == 4:
            return "mxfp4" if group == 32 or "mxfp4" in layout else "nvfp4-g16"
        if bits == 8 and group == 32:
            return "mxfp8"
        return {"channel": "fp8-channel", "block": "fp8-block128"}.get(str(strategy), "fp8-tensor")
    if bits == 8 and not group:
        if "pack" in layout:
            return "int8-channel-sym"
        return "int8-tensor" if strategy == "tensor" else "int8-channel"
    symmetry = "sym" if weights.get("symmetric", True) else "asym"
    order = "-actorder" if weights.get("actorder") in ("group", True) else ""
    return f"int{bits}-{_group(q, group)}-{symmetry}{order}"


def _group(q: Config, size: object) -> str:
    """A group's part of a format id; -1 and none mean one scale a row."""
    if size in (None, -1, 0):
        return "channel"
    if isinstance(size, bool) or not isinstance(size, int):
        raise q.fail(f"quantization_config group_size is {size!r}, not a number")
    return f"g{size}"


def _awq(q: Config, native: str) -> Quantization:
    """AutoAWQ: packed int4 with a 16-bit scale and a zero point a group."""
    bits, group = q.integer("bits", "w_bit", default=4, high=8), q.get("group_size", "q_group_size", default=128)
    symmetry = "asym" if q.boolean("zero_point", default=True) else "sym"
    return Quantization(
        precision_id="awq-int4",
        default=f"int{bits}-{_group(q, group)}-{symmetry}",
        ignored=_patterns(q, "modules_to_not_convert"),
        has_mtp=False,
    )


def _gptq(q: Config, native: str) -> Quantization:
    """GPTQ and AutoRound: zero points and group indexes are stored, even where they say nothing."""
    bits, group = q.integer("bits", default=4, high=8), q.get("group_size", default=128)
    if q.string("packing_format", default="") == "auto_round:auto_awq":
        return replace(_awq(q, native), has_mtp=False)
    symmetry = "sym" if q.boolean("sym", default=True) else "asym"
    order = "-actorder" if q.boolean("desc_act") else ""
    dynamic, extra = q.get("dynamic", default=None), q.get("extra_config", default=None)
    kept = [key[2:] for key in dynamic if key.startswith("-:")] if isinstance(dynamic, Mapping) else []
    wide = (
        [k for k, v in extra.items() if isinstance(v, Mapping) and v.get("bits", bits) >= 16]
        if isinstance(extra, Mapping)
        else []
    )
    return Quantization(
        precision_id=f"gptq-int{bits}",
        default=f"gptq{bits}-{_group(q, group)}-{symmetry}{order}",
        ignored=ModulePatterns([*(f"re:{k}" for k in kept), *wide]),
        has_mtp=False,
    )


def _bitsandbytes(q: Config, native: str) -> Quantization:
    """bitsandbytes: nf4 blocks of 64, or LLM.int8()."""
    skipped = _patterns(q, "llm_int8_skip_modules")
    if q.boolean("load_in_8bit"):
        return Quantization(precision_id="bnb-int8", default="int8-bnb", ignored=skipped, has_mtp=False)
    default = "nf4-g64-dq" if q.boolean("bnb_4bit_use_double_quant") else "nf4-g64"
    return Quantization(precision_id=_PRECISIONS[default], default=default, ignored=skipped, has_mtp=False)


def _mxfp4(q: Config, native: str) -> Quantization:
    """gpt-oss: routed experts in MXFP4, the rest 16-bit."""
    return Quantization(
        precision_id="mxfp4",
        default="mxfp4",
        only_experts=True,
        ignored=_patterns(q, "modules_to_not_convert"),
    )


def _modelopt(q: Config, native: str) -> Quantization:
    """NVIDIA ModelOpt: one algorithm and what it leaves out, or a list of layers with their algorithms (mixed)."""
    algorithm = q.string("quant_algo")
    if q.get("config_groups", default=None):
        return _compressed_tensors(q, native)
    ignored = _patterns(q, "exclude_modules", "ignore")
    kv = _kv_scheme(q)
    if algorithm in (None, "MIXED_PRECISION"):
        formats = _named_layers(q)
        if not formats and algorithm:
            raise q.fail("MIXED_PRECISION without quantized_layers")
        name = formats[0][1] if formats else None
        return Quantization(precision_id=_precision(name, native), formats=formats, ignored=ignored, kv_cache_scheme=kv)
    default = _algorithm(q, algorithm)
    return Quantization(precision_id=_precision(default, native), default=default, ignored=ignored, kv_cache_scheme=kv)


def _algorithm(q: Config, name: object) -> str:
    if str(name).upper() not in _MODELOPT:
        raise q.fail(f"unknown quant_algo {name!r}")
    return _MODELOPT[str(name).upper()]


def _named_layers(q: Config) -> list[tuple[ModulePatterns, str]]:
    """`quantized_layers`: module → algorithm; the narrowest formats first, as experts outweigh the rest."""
    layers = q.get("quantized_layers", default=None)
    if not isinstance(layers, Mapping):
        return []
    by_format: dict[str, list[str]] = {}
    for module, what in layers.items():
        by_format.setdefault(_algorithm(q, what.get("quant_algo") if isinstance(what, Mapping) else what), []).append(
            module
        )
    order = sorted(by_format, key=lambda name: ("fp4" not in name, name))
    return [(ModulePatterns(by_format[name]), name) for name in order]


def _torchao(q: Config, native: str) -> Quantization:
    """TorchAO: int4, int8 or float8 weights by the name of its config."""
    word = str(q.get("quant_type", default="")).lower()
    if "int4" in word:
        kwargs = q.section("quant_type_kwargs")
        group = kwargs.integer("group_size", default=128) if kwargs else 128
        return Quantization(precision_id="torchao-int4", default=f"torchao-int4-g{group}")
    if "float8" in word or "fp8" in word:
        return Quantization(precision_id="torchao-fp8", default="fp8-channel")
    return Quantization(precision_id="torchao-int8", default="int8-channel")


def _hqq(q: Config, native: str) -> Quantization:
    return Quantization(precision_id="hqq-int4", default="hqq-int4-g64", has_mtp=False)


def _quark(q: Config, native: str) -> Quantization:
    """AMD Quark: a dtype and a scale scheme for the weights."""
    whole = q.section("global_quant_config")
    weight = whole.section("weight") if whole else None
    if weight is None:
        raise q.fail("quantization_config has no global_quant_config.weight")
    dtype, scheme = weight.string("dtype") or "", weight.string("qscheme") or ""
    if "fp4" in dtype:
        default = "mxfp4"
    elif "fp8" in dtype:
        default = "fp8-channel" if "channel" in scheme else "fp8-tensor"
    elif "int8" in dtype:
        default = "int8-channel" if "channel" in scheme else "int8-tensor"
    else:
        default = f"int4-{_group(q, weight.get('group_size', default=128))}-asym"
    return Quantization(precision_id=_precision(default, native), default=default, ignored=_patterns(q, "exclude"))


def _exl(q: Config, native: str) -> Quantization:
    """ExLlama: a mean number of bits."""
    kind = q.string("quant_method") or "exl2"
    bits = round(q.number("bits", default=4.0) * 20) / 20
    return Quantization(precision_id=f"{kind}-{bits:g}", default=f"{kind}-{bits:g}", has_mtp=False)


_DIALECTS: dict[str, Callable[[Config, str], Quantization]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "compressed-tensors": _compressed_tensors,
    "awq": _awq,
    "awq_marlin": _awq,
    "gptq": _gptq,
    "gptq_marlin": _gptq,
    "auto-round": _gptq,
    "auto_round": _gptq,
    "intel/auto-round": _gptq,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "torchao": _torchao,
    "hqq": _hqq,
    "quark": _quark,
    "exl2": _exl,
    "exl3": _exl,
}


def _kv_scheme(q: Config) -> str | None:
    """fp8 (or nvfp4) where the repository carries scales for its KV cache."""
    scheme = q.get("kv_cache_scheme", default=None)
    if isinstance(scheme, Mapping):
        return "fp8" if scheme.get("num_bits") == 8 else "nvfp4"
    algorithm = q.string("kv_cache_quant_algo")
    return {"FP8": "fp8", "NVFP4": "nvfp4"}.get((algorithm or "").upper())


def _precision(format_id: str | None, native: str) -> str:
    if format_id is None:
        return native
    if format_id in _PRECISIONS:
        return _PRECISIONS[format_id]
    if format_id.startswith("int8"):
        return "ct-w8a16"
    return "ct-w4a16-asym" if "asym" in format_id else "ct-w4a16"


def _with_expert_dtype(q: Quantization, c: Config) -> Quantization:
    """DeepSeek-V4 states its experts' dtype outside quantization_config."""
    dtype = c.string("expert_dtype")
    if dtype != "fp4":
        return q
    if q.default is None:
        return replace(q, default="mxfp4", only_experts=True, precision_id="mxfp4", method=q.method or "mxfp4")
    return replace(q, experts="mxfp4", precision_id="mxfp4")


def read_quantization(top: Config, text: Config, side: Mapping[str, Any] | None, *, native: str) -> Quantization:
    """The quantization of a repository: config.json at either level, else ModelOpt's side file, else none."""
    q = top.section("quantization_config") or text.section("quantization_config") or top.section("compression_config")
    aside = _side_section(top, side)
    if q is None and aside is None:
        return _with_expert_dtype(Quantization(precision_id=native), text)
    if q is None or (aside is not None and q.string("quant_method") == "modelopt" and not q.has("config_groups")):
        found, method = _modelopt(aside or top, native), "modelopt"
    else:
        method = q.string("quant_method") or ("bitsandbytes" if q.has("load_in_4bit") else "modelopt")
        dialect = _DIALECTS.get(method.lower())
        if dialect is None:
            raise top.fail(f"unknown quantization method {method!r}")
        found = dialect(q, native)
        if found.kv_cache_scheme is None and aside is not None:
            found = replace(found, kv_cache_scheme=_kv_scheme(aside))
    return _with_expert_dtype(replace(found, method=method), text)


def _side_section(top: Config, side: Mapping[str, Any] | None) -> Config | None:
    """hf_quant_config.json keeps everything under `quantization`."""
    if side is None:
        return None
    inner = side.get("quantization")
    return top.aside(inner if isinstance(inner, Mapping) else side)
