"""Two ways to know the same figures of a model, side by side: its config and the headers of its files."""

from collections.abc import Iterable

import polars as pl

from fitmart.estimator.anatomy import Anatomy, Tensor, count_params, to_frames
from fitmart.estimator.architectures.module_patterns import strip
from fitmart.estimator.formats import with_bytes
from fitmart.estimator.frames import schema

MODEL_CHECK_SCHEMA = schema(
    model_id=pl.String,
    check_name=pl.String,
    config_value=pl.Int64,
    header_value=pl.Int64,
    is_equal=pl.Boolean,
    explanation=pl.String,
)
_COUNTS = ("params_total", "params_mtp", "stored_params")
_BYTES_TOLERANCE = 0.001  # scales of activations, alignment and the like are in no config
_SHOWN = 3  # names in an explanation


def model_check(config: Anatomy, header: Anatomy) -> pl.DataFrame:
    """MODEL_CHECK_SCHEMA: totals, bytes (not of a GGUF), parameters of each component, tensors that only one has.

    `is_equal` of stored_bytes allows a thousandth. `explanation` is null where both agree.
    """
    rows = _count_rows(config, header)
    if not header.facts.native_precision.startswith("gguf-"):  # whose types no config states
        rows.append(_bytes_row(config, header))
    rows += _component_rows(config, header)
    rows += _name_rows(config, header)
    return pl.DataFrame(
        [{"model_id": header.facts.model_id} | row for row in rows], schema=MODEL_CHECK_SCHEMA, orient="row"
    )


def unread_headers(model_id: str, reason: str) -> pl.DataFrame:
    """The one row of a model whose headers contradict themselves: its config serves alone."""
    row = {"model_id": model_id, "check_name": "headers", "is_equal": False, "explanation": reason}
    return pl.DataFrame([row], schema=MODEL_CHECK_SCHEMA)


def _row(name: str, config: int | None, header: int | None, explanation: str, *, is_equal: bool) -> dict[str, object]:
    return {
        "check_name": name,
        "config_value": config,
        "header_value": header,
        "is_equal": is_equal,
        "explanation": None if is_equal else explanation,
    }


def _count_rows(config: Anatomy, header: Anatomy) -> list[dict[str, object]]:
    of_config, of_header = count_params(config), count_params(header)
    return [
        _row(
            name,
            of_config[name],
            of_header[name],
            _cause(config, header, of_header[name] - of_config[name]),
            is_equal=of_config[name] == of_header[name],
        )
        for name in _COUNTS
    ]


def _cause(config: Anatomy, header: Anatomy, difference: int) -> str:
    """What the difference of a count comes from, where one cause explains it whole."""
    more = f"the files hold {abs(difference):,} parameters {'more' if difference > 0 else 'fewer'}"
    for name, mine, theirs in (
        ("an output matrix", _sum(config, "lm_head"), _sum(header, "lm_head")),
        ("prediction layers", _sum(config, "mtp"), _sum(header, "mtp")),
        ("vision and audio towers", _sum(config, "vision", "audio"), _sum(header, "vision", "audio")),
        ("widths padded for a quantization", _sum(config, "mlp"), _sum(header, "mlp")),
        ("buffers", _buffers(config), _buffers(header)),
    ):
        if theirs - mine == difference:
            return f"{more}: {name}"
    return more


def _sum(anatomy: Anatomy, *components: str) -> int:
    return sum(t.params for t in anatomy.tensors if t.component in components and t.is_stored)


def _buffers(anatomy: Anatomy) -> int:
    return sum(t.params for t in anatomy.tensors if not t.is_in_memory and t.is_stored and t.component != "mtp")


def _bytes_row(config: Anatomy, header: Anatomy) -> dict[str, object]:
    expected, found = expected_stored_bytes(config), header.facts.stored_bytes
    is_equal = found is not None and abs(found - expected) <= _BYTES_TOLERANCE * found
    share = (found or 0) / expected - 1 if expected else 0.0
    return _row("stored_bytes", expected, found, f"the files hold {share:+.2%} of what is expected", is_equal=is_equal)


def expected_stored_bytes(anatomy: Anatomy) -> int:
    """Bytes that the anatomy's stored tensors take in their formats."""
    _, tensors, _ = to_frames([anatomy])
    stored = tensors.filter("is_stored").with_columns(
        format=pl.col("stored_format").fill_null(anatomy.facts.native_dtype)
    )
    return int((with_bytes(stored)["bytes"] * stored["layer_count"] * stored["copies"]).sum())


def _component_rows(config: Anatomy, header: Anatomy) -> list[dict[str, object]]:
    names = dict.fromkeys(t.component for t in (*config.tensors, *header.tensors))
    rows = []
    for component in names:
        mine, theirs = _sum(config, component), _sum(header, component)
        why = f"the files hold {theirs - mine:+,} parameters in {component}"
        rows.append(_row(f"params.{component}", mine, theirs, why, is_equal=mine == theirs))
    return rows


def _name_rows(config: Anatomy, header: Anatomy) -> list[dict[str, object]]:
    """Tensors under a name that the other side lacks. GGUF has names of its own: nothing to compare."""
    mine, theirs = _names(config.tensors), _names(header.tensors)
    if not mine & theirs:
        return []
    rows = []
    for name, only in (("tensors_only_in_config", mine - theirs), ("tensors_only_in_header", theirs - mine)):
        shown = ", ".join(sorted(only)[:_SHOWN]) + (", …" if len(only) > _SHOWN else "")
        counts = (len(only), 0) if name == "tensors_only_in_config" else (0, len(only))
        rows.append(_row(name, *counts, shown, is_equal=not only))
    return rows


def _names(tensors: Iterable[Tensor]) -> set[str]:
    return {strip(t.name) for t in tensors if t.is_stored}
