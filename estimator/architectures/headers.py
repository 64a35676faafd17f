"""Headers → Anatomy: the tensors exactly as stored, for any architecture; caches and scalars from the config.

Where the family's reader knows a tensor by its name, its component, cut and orientation are taken from there; the
number of elements is always the header's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fitmart.estimator.anatomy import Anatomy, AnatomyError, ModelFacts, Tensor
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.architectures.headers_gguf_config import gguf_config, gguf_precision
from fitmart.estimator.architectures.headers_names import component_of, fold, is_buffer, tp_axis_of
from fitmart.estimator.architectures.headers_packing import (
    MAIN_PARTS,
    Matrix,
    Part,
    is_loose_scale,
    logical_name,
    main_of,
    plain,
    split,
    unpack,
)
from fitmart.estimator.architectures.headers_records import Header, HeaderError
from fitmart.estimator.architectures.module_patterns import strip

Index = tuple[int | None, int | None]  # layer, expert
_MODEL_LAYER = ("layers.{layer}.", "blk.{layer}.")


@dataclass(slots=True)
class _Group:
    """Tensors of one folded name that are stored alike."""

    name: str
    part: Part
    indexes: list[Index] = field(default_factory=list)


def anatomy_from_headers(
    model_id: str,
    headers: Sequence[Header],
    config: Mapping[str, Any] | None,
    *,
    quant_config: Mapping[str, Any] | None = None,
) -> Anatomy:
    """The anatomy of a checkpoint: `headers` of all its files, its config.json, and hf_quant_config.json if any.

    `config` None: a GGUF's own metadata serves. Raises HeaderError or AnatomyError with one line, also where what a
    sequence keeps cannot be known.
    """
    if not any(header.tensors for header in headers):
        raise HeaderError(f"{model_id}: no tensor in its headers")
    known = config_anatomy(model_id, headers, config, quant_config=quant_config)
    facts = replace(known.facts, stored_bytes=stored_bytes(headers))
    if facts.anatomy_basis == "config":
        facts = replace(facts, anatomy_basis="header")
    if headers[0].container == "gguf":
        facts = _gguf_facts(facts, headers)
    return Anatomy(facts=facts, tensors=tensors_from_headers(headers, known), caches=known.caches)


def config_anatomy(
    model_id: str,
    headers: Sequence[Header],
    config: Mapping[str, Any] | None,
    *,
    quant_config: Mapping[str, Any] | None = None,
) -> Anatomy:
    """The anatomy that the config describes: config.json's, else that of a GGUF's metadata."""
    if config is None:
        if not headers or headers[0].container != "gguf":
            raise HeaderError(f"{model_id}: {_summary(headers)}; without config.json its caches cannot be known")
        try:
            return parse_config(model_id, gguf_config(model_id, headers))
        except AnatomyError as error:
            raise HeaderError(str(error).replace("config.json", "the GGUF's metadata")) from None
    return parse_config(model_id, config, quant_config=quant_config)


def stored_bytes(headers: Iterable[Header]) -> int:
    """Bytes of all tensors as stored, scales and buffers included."""
    return sum(tensor.stored_bytes for header in headers for tensor in header.tensors)


def tensors_from_headers(headers: Sequence[Header], known: Anatomy | None = None) -> tuple[Tensor, ...]:
    """Every stored tensor, folded over layers and experts, in the files' order; scales and zero points are no tensors.

    `known`: what the config describes, for what headers do not say. Raises HeaderError.
    """
    stems: dict[str, dict[str, list[_Group]]] = {}
    for group in _groups(headers):
        stem, part = split(group.name)
        stems.setdefault(stem, {}).setdefault(part, []).append(group)
    resolver = _Resolver(known)
    tensors: list[Tensor] = []
    for stem, parts in stems.items():
        for name, group, matrix in _matrices(stem, parts):
            tensors += resolver.resolve(name, matrix, group.indexes)
    return tuple(tensors)


def _groups(headers: Sequence[Header]) -> Iterable[_Group]:
    groups: dict[tuple[str, str, tuple[int, ...]], _Group] = {}
    seen: set[str] = set()
    for header in headers:
        for tensor in header.tensors:
            if tensor.name in seen:
                raise HeaderError(f"{tensor.name} is stored twice: these files are not one checkpoint")
            seen.add(tensor.name)
            name, layer, expert = fold(tensor.name)
            key = (name, tensor.dtype, tensor.shape)
            if key not in groups:
                groups[key] = _Group(name, Part(tensor.dtype, tensor.shape))
            groups[key].indexes.append((layer, expert))
    return groups.values()


def _matrices(stem: str, parts: dict[str, list[_Group]]) -> Iterable[tuple[str, _Group, Matrix]]:
    """The logical tensors of a stem: the unpacked ones, and those that are stored plainly."""
    is_packed = False
    for main in MAIN_PARTS:
        for group in parts.get(main, ()):
            beside = _beside(parts, group.indexes[0]) | {main: group.part}
            if main_of(beside) == main:
                is_packed = True
                yield logical_name(stem, main), group, unpack(stem, main, beside)
            elif not is_loose_scale(group.name):
                yield group.name, group, plain(group.name, group.part)
    if is_packed:
        return
    for part, groups in parts.items():
        if part not in MAIN_PARTS and not is_loose_scale(groups[0].name):
            for group in groups:
                yield group.name, group, plain(group.name, group.part)


def _beside(parts: dict[str, list[_Group]], index: Index) -> dict[str, Part]:
    """The parts of the same layer and expert."""
    found: dict[str, Part] = {}
    for name, groups in parts.items():
        group = groups[0] if len(groups) == 1 else next((g for g in groups if index in g.indexes), None)
        if group is not None:
            found[name] = group.part
    return found


class _Resolver:
    """Component, cut and orientation of a logical tensor: from the family's reader, else by its name."""

    def __init__(self, known: Anatomy | None) -> None:
        self._facts: ModelFacts | None = known.facts if known else None
        self._known: dict[str, list[Tensor]] = {}
        for tensor in known.tensors if known else ():
            self._known.setdefault(strip(tensor.name), []).append(tensor)

    def resolve(self, name: str, matrix: Matrix, indexes: Sequence[Index]) -> list[Tensor]:
        """The tensor's rows: its layers split where they differ."""
        experts: dict[int | None, int] = {}
        for layer, _ in indexes:
            experts[layer] = experts.get(layer, 0) + 1
        groups: dict[Tensor, list[int]] = {}
        for layer, count in experts.items():
            groups.setdefault(self._one(name, layer, matrix, count), []).extend([] if layer is None else [layer])
        return [replace(tensor, layers=tuple(sorted(layers))) for tensor, layers in groups.items()]

    def _one(self, name: str, layer: int | None, matrix: Matrix, count: int) -> Tensor:
        candidates = self._known.get(strip(name), ())
        like = next((t for t in candidates if layer is None or layer in t.layers), None)
        stored_format = self._stored_format(matrix.stored_format, like)
        if like is None:
            return self._unknown(name, layer, matrix, count, stored_format)
        rows, columns, copies = matrix.rows, matrix.columns, matrix.copies * count
        if like.rows * like.columns * like.copies == rows * columns * copies:
            rows, columns, copies = like.rows, like.columns, like.copies  # the same elements: the axes by their role
        return replace(
            like, name=name, rows=rows, columns=columns, copies=copies, layers=(), stored_format=stored_format
        )

    def _unknown(self, name: str, layer: int | None, matrix: Matrix, count: int, stored_format: str | None) -> Tensor:
        component = component_of(name)
        facts = self._facts
        if facts and layer is not None and layer >= facts.layers and strip(name).startswith(_MODEL_LAYER):
            component = "mtp"
        axis, is_kv = tp_axis_of(name, component, is_vector=matrix.columns == 1)
        is_tied_copy = component == "lm_head" and facts is not None and facts.is_tied
        return Tensor(
            component=component,
            name=name,
            rows=matrix.rows,
            columns=matrix.columns,
            copies=matrix.copies * count,
            tp_axis=axis,
            tp_max_shards=facts.kv_heads if facts and is_kv else None,
            is_in_memory=not (component == "mtp" or is_tied_copy or is_buffer(name)),
            stored_format=stored_format,
        )

    def _stored_format(self, stored: str | None, like: Tensor | None) -> str | None:
        """The format as the config words it where the header cannot tell (GPTQ's symmetry); native: None."""
        if stored is None or (self._facts and stored == self._facts.native_dtype):
            return None
        if like and like.stored_format and stored.startswith("gptq"):
            return like.stored_format if like.stored_format.startswith(stored.removesuffix("-sym")) else stored
        return stored


def _gguf_facts(facts: ModelFacts, headers: Sequence[Header]) -> ModelFacts:
    precision = gguf_precision(headers)
    is_quantized = precision not in ("gguf-f32", "gguf-f16", "gguf-bf16")
    return replace(facts, native_precision=precision, quant_method="gguf" if is_quantized else None)


def _summary(headers: Sequence[Header]) -> str:
    """What the headers alone tell, for a message."""
    params = sum(t.params for t in tensors_from_headers(headers) if t.is_in_memory)
    return f"holds {params:,} parameters in {stored_bytes(headers):,} bytes"
