"""One estimate line by line: every number of the sum, how it comes about, and where from.

The lines add up again what the engine modules computed, from the parts; the results are those of `fit` to the byte
(tests/estimator/test_explain.py holds the two together).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fitmart.estimator.answer import all_figures
from fitmart.estimator.engines.llamacpp_placement import HOST
from fitmart.estimator.engines.versions import parse_version
from fitmart.estimator.estimate import engine_memory, in_devices, llamacpp_device_buffers
from fitmart.estimator.fit import words
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.scenarios import to_deployments
from fitmart.estimator.units import GIB

_PARTS = ("embedding", "attention", "mlp", "experts", "norm", "lm_head")
_PART_WORDS = {"norm": "norms and routers", "lm_head": "output head", "mlp": "feed-forward"}
_RULES = {"vllm": "vllm", "llama.cpp": "llamacpp", "mlx": "mlx", "sglang": "server", "tensorrt-llm": "server"}
_BASIS = {
    "stored": "as stored in the repository's files",
    "derived": "from the tensors' shapes and the format's rule",
    "typical": "typical of this recipe; publishers differ",
    "assumed": "an assumption",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: `value` in `unit`, the formula in words and numbers, and its source."""

    name: str  # the column of fit or capacity that it is, or a part's own name
    label: str
    value: int | float | str | None
    unit: str  # bytes, tokens, count, tokens/s, ms or empty
    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The lines in order, and what they come to in words."""

    lines: tuple[Line, ...]
    verdict: str
    limited_by: str | None
    words: str

    def value(self, name: str) -> int | float | str | None:
        """The value of the last line of that name."""
        return next(line.value for line in reversed(self.lines) if line.name == name)


def explain(scenario: pl.DataFrame, models: Models, reference: Reference) -> Explanation:
    """Explain one typed scenario with its defaults, whose model, precision and GPU are known."""
    row = all_figures(scenario, models, reference).row(0, named=True)
    row["devices"] = row["gpu_count"] * (1 if row["device_memory_bytes"] is not None else row["device_count"] or 1)
    lines = [*_memory(row, reference), *_weights(row)]
    if row["engine_id"] == "llama.cpp":
        lines += _llamacpp(row, _one_user(scenario, models, reference), reference)
    else:
        lines += _servers(row, reference)
    lines += [*_cache(row, models), *_results(row), *_speed(row)]
    return Explanation(tuple(lines), row["verdict"], row["limited_by"], _verdict(row))


def _memory(row: Mapping[str, Any], reference: Reference) -> Iterator[Line]:
    """The device's memory, and what of it the engine may use."""
    gpu = f"gpu: {row['gpu_id']}" if row["gpu_id"] else "the memory that was stated"
    stated = row["device_memory_bytes"]
    unified = row["is_unified_memory"]
    memory = stated or (row["memory_bytes"] if unified else row["torch_memory_bytes"] or row["memory_bytes"])
    is_card = stated is None and (row["device_count"] or 1) > 1
    if memory is not None and is_card:
        memory //= row["device_count"]
    told = "stated" if stated else "all of the machine's" if unified else "what the runtime gives out"
    if is_card:
        told += f", one of the card's {row['device_count']} devices"
    yield Line(name="memory_bytes", label="Memory of one GPU", value=memory, unit="bytes", formula=told, source=gpu)
    budget = row["budget_bytes"]
    share = budget / memory if memory and budget else None
    if row["engine_id"] == "vllm":
        rule = f"gpu_memory_utilization {share:.4g} of it" if share else "gpu_memory_utilization of it"
    else:
        rule = f"{share:.4g} of it: what the GPU may address" if share and share < 1 else "all of it"
    yield Line(
        name="budget_bytes", label="of which the engine may use", value=budget, unit="bytes", formula=rule,
        source=_rule(row, reference, "gpu_memory_utilization") if row["engine_id"] == "vllm" else gpu,
    )  # fmt: skip


def _weights(row: Mapping[str, Any]) -> Iterator[Line]:
    """The parts of the whole model, and the share of the fullest GPU."""
    source = f"footprint: {row['precision_id']}, {_BASIS.get(row['basis'], row['basis'])}"
    for part in _PARTS:
        if size := row[f"{part}_bytes"]:
            yield Line(
                name=f"{part}_bytes", label=f"  {_PART_WORDS.get(part, part)}", value=size, unit="bytes",
                formula="whole model", source=source,
            )  # fmt: skip
    total = row["weights_total_bytes"]
    params = row["params_total"]
    bits = f"{params:,} parameters × {8 * total / params:.3f} bit" if total and params else "not known"
    yield Line(
        name="weights_total_bytes", label="Weights, whole model", value=total, unit="bytes", formula=bits, source=source
    )


def _servers(row: Mapping[str, Any], reference: Reference) -> Iterator[Line]:
    """vLLM, SGLang, TensorRT-LLM, MLX: budget − weights − overhead of one GPU = KV cache."""
    ways = row["tensor_parallel"]
    split = f"split {ways} ways" if ways > 1 else "all on one GPU"
    parts = [
        ("weights_bytes", "Weights on the fullest GPU", f"{split}; what does not divide is on each", "footprint"),
        ("activation_bytes", "Activations at their peak", "largest batch that the engine profiles", ""),
        ("non_torch_bytes", "Runtime and communication", "outside the framework's allocator", ""),
        ("cuda_graph_bytes", "Captured graphs", "of the batch sizes that are captured", ""),
    ]
    left = row["budget_bytes"]
    for name, label, formula, source in parts:
        if row[name] is None and name != "weights_bytes":
            continue
        left = None if left is None or row[name] is None else left - row[name]
        yield Line(
            name=name, label=label, value=row[name], unit="bytes", formula=formula,
            source=source or _rule(row, reference, name),
        )  # fmt: skip
    yield Line(
        name="kv_available_bytes", label="Left for the KV cache, one GPU", value=left, unit="bytes",
        formula=_sum(row["budget_bytes"], *(row[name] for name, *_ in parts)), source="sum",
    )  # fmt: skip


def _one_user(scenario: pl.DataFrame, models: Models, reference: Reference) -> list[dict[str, Any]]:
    """llama.cpp's devices with the cache and the compute buffer of one user: what `fit` judges by."""
    deployments = to_deployments(scenario).with_columns(n_parallel=pl.lit(1, pl.Int64))
    compute = engine_memory(in_devices(deployments, reference.gpus), models, reference)["compute_buffer_bytes"][0]
    devices = llamacpp_device_buffers(deployments, models, reference).filter(pl.col("device") != HOST)
    return devices.with_columns(compute_bytes=pl.lit(compute, pl.Int64)).to_dicts()


def _llamacpp(row: Mapping[str, Any], devices: list[dict[str, Any]], reference: Reference) -> Iterator[Line]:
    """llama.cpp: budget − weights − compute buffer − overhead of the GPU with the least to spare = KV cache."""
    overhead, budget = row["non_torch_bytes"], row["budget_bytes"]
    compute = devices[0]["compute_bytes"] if devices else None

    def spare(device: Mapping[str, Any]) -> int:
        return int(budget - device["weights_bytes"] - compute - overhead - device["kv_cache_bytes"])

    is_known = bool(devices) and None not in (budget, compute, overhead, devices[0]["weights_bytes"])
    fullest: Mapping[str, Any] = min(devices, key=spare) if is_known else {"device": 0, "weights_bytes": None}
    weights = fullest["weights_bytes"]
    place = (
        f"GPU {fullest['device'] + 1} of {len(devices)}, which has the least to spare"
        if len(devices) > 1
        else "one GPU"
    )
    parts = (
        ("weights_bytes", "Weights (model buffer)", weights, f"layers of {place}", "footprint"),
        ("compute_buffer_bytes", "Compute buffer", compute, "one micro-batch of one user", ""),
        ("non_torch_bytes", "Runtime outside the buffers", overhead, "context and kernels of the backend", ""),
    )
    for name, label, value, formula, source in parts:
        yield Line(
            name=name, label=label, value=value, unit="bytes", formula=formula,
            source=source or _rule(row, reference, name),
        )  # fmt: skip
    left = budget - weights - compute - overhead if is_known else None
    yield Line(
        name="kv_available_bytes", label="Left for the KV cache, that GPU", value=left, unit="bytes",
        formula=_sum(budget, weights, compute, overhead), source="sum",
    )  # fmt: skip
    if is_known:
        whole = sum(d["weights_bytes"] + d["kv_cache_bytes"] + compute + overhead for d in devices)
        yield Line(
            name="required_bytes", label="Needed for one user, all GPUs", value=whole, unit="bytes",
            formula="weights + cache of one user + compute buffer + runtime, GPU by GPU", source="sum",
        )  # fmt: skip


def _cache(row: Mapping[str, Any], models: Models) -> Iterator[Line]:
    """What one sequence keeps: by kind of cache, and as the engine sets it aside on one GPU."""
    for cache in models.caches.filter(pl.col("model_id") == row["model_id"]).iter_rows(named=True):
        window = f", the last {cache['window_tokens']:,} tokens" if cache["window_tokens"] else ""
        elements = cache["layer_count"] * cache["elements_per_token"]
        fixed = cache["layer_count"] * cache["fixed_elements"]
        formula = f"{cache['layer_count']} layers × {cache['elements_per_token']:,} elements a token{window}"
        if not elements:
            formula = f"{cache['layer_count']} layers × {cache['fixed_elements']:,} elements, whatever the context"
        yield Line(
            name="elements", label=f"  cache: {cache['kind']}", value=elements or fixed, unit="elements",
            formula=formula, source=f"model_cache: {row['anatomy_basis']}",
        )  # fmt: skip
    yield Line(
        name="kv_minimum_bytes", label="One sequence, least possible", value=row["kv_minimum_bytes"], unit="bytes",
        formula=f"{row['context_tokens']:,} tokens at {row['kv_precision']}", source="kv_cache",
    )  # fmt: skip
    block = row["kv_block_bytes"]
    sequence = row["sequence_kv_bytes"]
    blocks = (
        f"{sequence // block:,} blocks of {block:,} bytes" if sequence and block and block > 1 else "one GPU's share"
    )
    yield Line(
        name="sequence_kv_bytes", label="One sequence on one GPU", value=sequence, unit="bytes", formula=blocks,
        source=f"{row['engine_id']} {row['engine_version_used'] or ''}".rstrip(),
    )  # fmt: skip


def _results(row: Mapping[str, Any]) -> Iterator[Line]:
    """What the parts come to on all GPUs."""
    devices, left, sequence = row["devices"], row["kv_available_bytes"], row["sequence_kv_bytes"]
    is_known = left is not None and sequence is not None
    if row["engine_id"] != "llama.cpp":
        parts = [row[n] for n in ("weights_bytes", "activation_bytes", "non_torch_bytes", "cuda_graph_bytes")]
        needed = [p for p in (*parts, sequence) if p is not None]
        yield Line(
            name="required_bytes", label="Needed for one user, all GPUs", unit="bytes",
            value=sum(needed) * devices if row["required_bytes"] is not None else None,
            formula=f"({' + '.join(f'{p:,}' for p in needed)}) × {devices}", source="sum",
        )  # fmt: skip
    yield Line(
        name="taken_bytes", label="Taken by the engine, all GPUs", value=row["taken_bytes"], unit="bytes",
        formula="all it may use" if row["engine_id"] == "vllm" else "what it sets aside at these settings",
        source=f"{row['engine_id']}'s rule",
    )  # fmt: skip
    yield Line(
        name="headroom_bytes", label="Free beside one user, all GPUs", unit="bytes",
        value=(left - sequence) * devices if is_known else None,
        formula=f"({left:,} − {sequence:,}) × {devices}" if is_known else "not known", source="difference",
    )  # fmt: skip
    yield Line(
        name="users", label="Users of this context at once", value=row["users"], unit="count",
        formula=_users(row, left, sequence) if is_known else "not known", source="division",
    )  # fmt: skip
    yield Line(
        name="fit_context_tokens", label="Longest context of one user", value=row["fit_context_tokens"], unit="tokens",
        formula="the same sum, solved for the context", source="sum",
    )  # fmt: skip


def _users(row: Mapping[str, Any], left: int, sequence: int) -> str:
    if row["engine_id"] == "llama.cpp" and row["devices"] > 1:
        return "as many as the GPU that holds the fewest"
    return f"{left:,} ÷ {sequence:,}, whole blocks"


def _speed(row: Mapping[str, Any]) -> Iterator[Line]:
    """A decode step of one user and a prompt, where the speed is known."""
    if row["decode_tokens_per_s"] is None:
        return
    cached = row["cached_tokens"] + row["input_tokens"] + row["output_tokens"] / 2
    share = row["experts_per_token"] / row["experts"] if row["experts"] else 0
    experts = f"{row['decode_experts_s'] * share * 1e3:.3f} ms experts + " if share else ""
    terms = (
        f"1 ÷ ({row['decode_fixed_s'] * 1e3:.3f} ms weights and launches + {experts}"
        f"{row['decode_s_per_user'] * 1e3:.3f} ms a user + "
        f"{cached:,.0f} tokens × {row['decode_s_per_kv_token'] * 1e9:.2f} ns)"
    )
    source = "speed_coefficient: fitted to measurements (tests/accuracy/RESULTS.md), 80 % band"
    for name, label, unit, formula in (
        ("decode_tokens_per_s", "Output of one user alone", "tokens/s", terms),
        (
            "ttft_ms", "Time to the first token", "ms",
            f"{row['input_tokens']:,} tokens of prompt × {row['prefill_s_per_token'] * 1e6:.1f} µs",
        ),
    ):  # fmt: skip
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        yield Line(
            name=name, label=label, value=row[name], unit=unit, formula=f"{formula}; {low:,.1f} to {high:,.1f}",
            source=source,
        )  # fmt: skip


def _verdict(row: Mapping[str, Any]) -> str:
    """The verdict as a sentence with its figures."""
    headroom, low = row["headroom_bytes"], row["kv_available_bytes_low"]
    sentence = words(row["verdict"], row["limited_by"])
    sentence = sentence[0].upper() + sentence[1:]
    if headroom is None:
        return f"{sentence}."
    if row["verdict"] == "fits":
        return f"{sentence}: {headroom / GIB:,.2f} GiB stay free beside one user of {row['context_tokens']:,} tokens."
    if row["verdict"] == "tight":
        short = (low - row["sequence_kv_bytes"]) * row["devices"] / GIB
        return f"{sentence}: {headroom / GIB:,.2f} GiB by the estimate, {short:,.2f} GiB at the careful end."
    if row["limited_by"] in ("weights", "kv_cache"):
        return f"{sentence}: {-headroom / GIB:,.2f} GiB are missing for one user of {row['context_tokens']:,} tokens."
    return f"{sentence}."


def _sum(first: int | None, *less: int | None) -> str:
    known = [f"{part:,}" for part in less if part is not None]
    return f"{first:,} − {' − '.join(known)}" if first is not None else "not known"


def _rule(row: Mapping[str, Any], reference: Reference, parameter: str) -> str:
    """The engine and version whose rule it is, with the rule's page where a table holds the parameter itself."""
    prefix = _RULES[row["engine_id"]]
    version = row["engine_version_used"] or ""
    url = ""
    for name in (f"{prefix}_rule", f"{prefix}_overhead"):
        table = reference.rules.get(name)
        if table is not None and {"parameter", "url", "since_version"} <= set(table.columns):
            url = url or _newest_url(table.filter(pl.col("parameter") == parameter), version)
    return f"{row['engine_id']} {version}".rstrip() + (f", {url}" if url else f", rules {prefix}_*.csv")


def _newest_url(rules: pl.DataFrame, version: str) -> str:
    """The page of the last rule that holds at `version`."""
    used = parse_version(version)
    found = ""
    for since, url in rules.select(pl.col("since_version").cast(pl.String), "url").iter_rows():
        key = parse_version(since) if since else 0
        if used is None or key is None or key <= used:
            found = str(url or "")
    return found
