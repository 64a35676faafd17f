"""What fine-tuning takes: the bytes of one GPU, part by part, for full training, LoRA and QLoRA.

    total = weights + adapters + gradients + optimizer states + activations + logits + context of the device

Weights, gradients and states are counted from the tensors. Activations are the inputs and outputs of a layer's matrices
in 16 bit; with checkpointing each layer keeps its input alone and one layer at a time is computed again, in room that
the logits have left. The factors were fitted to published peaks (tests/accuracy/fit_finetune.py).
"""

from dataclasses import dataclass

import polars as pl

from fitmart.estimator.formats import with_bytes
from fitmart.estimator.units import GB

PARTS = ("weights", "adapter", "gradients", "optimizer", "activation", "logits", "overhead")
METHODS = ("full", "lora", "qlora")
SHARDINGS = ("none", "zero1", "zero2", "zero3", "fsdp")
# Matrices that get an adapter: all linear layers (routed experts are stacked parameters, which adapters leave out), or
# only attention.
LORA_TARGETS = {"all": ("attention", "mlp"), "attention": ("attention",)}
# The logits of all tokens at once, chunk by chunk, or never written out (cut cross-entropy).
LOSSES = ("whole", "chunked", "fused")
DEFAULT_RANK, DEFAULT_SEQUENCE_TOKENS = 16, 2048

# Bytes a trained parameter takes in the optimizer. `adamw` trains in mixed precision: moments and a master copy in
# float32. Paged states lie in the host's memory and visit the GPU. `<optimizer>-fused` steps as soon as a gradient is
# there, and frees it.
OPTIMIZERS = pl.DataFrame(
    {
        "optimizer": ["adamw", "adamw-bf16", "adamw-8bit", "paged-adamw", "paged-adamw-8bit", "adafactor", "sgd"],
        "moment_bytes": [8.0, 4.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        "master_bytes": [4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "is_factored": [False, False, False, False, False, True, False],
    }
)
_ALIASES = {
    "adamw-fp32": "adamw",
    "adamw-torch": "adamw",
    "paged": "paged-adamw-8bit",
    "paged-adamw-32bit": "paged-adamw",
}
_FUSED = "-fused"
_WEIGHT_BYTES = _GRADIENT_BYTES = 2
_FLOAT32 = 4
_QUANTIZED = "nf4-g64-dq"  # QLoRA: NF4 with double quantization
_LINEAR = ("attention", "mlp", "experts")
_GATHERED_LAYERS = 2  # sharded weights: the layer at work and the next one are whole


@dataclass(frozen=True, slots=True)
class Factors:
    """What measurements say. `kept` and `working`: of the 16-bit inputs and outputs of a layer's matrices."""

    kept: float = 0.8  # saved for the backward pass without checkpointing
    working: float = 1.3  # held while one layer is computed again and differentiated
    logit_bytes: float = 18.0  # per token and vocabulary entry: 16-bit and float32 logits, softmax and gradients
    chunked_share: float = 1 / 8  # of the logits, where the loss is computed chunk by chunk
    overhead_bytes: float = 1.0 * GB  # context of the device, workspaces, fragments


FACTORS = Factors()
# Share of the dense 16-bit peak that training reaches; an assumption (published runs: 0.3 to 0.5).
TRAINING_EFFICIENCY = 0.4

_OUTPUT = ("finetune_bytes", *(f"finetune_{part}_bytes" for part in PARTS), "trainable_params", "error")


def model_shapes(models: pl.DataFrame, tensors: pl.DataFrame) -> pl.DataFrame:
    """One row a model: the counts and bytes that training needs.

    params, quantized_bytes (QLoRA's base), layer_params (largest layer), widest_params (largest unit whose gradient
    exists at once), factor_elements (rows + columns of every matrix), layer_width and all_widths (inputs + outputs of
    the matrices one token meets, in the widest layer and in all), lora_width_<targets> (rows + columns that a rank
    multiplies).
    """
    facts = models.select("model_id", "layers", "hidden_size", "vocab_size", "experts", "experts_per_token")
    parts = tensors.filter("is_in_memory").join(facts, on="model_id", how="inner", validate="m:1")
    is_matrix = pl.col("columns") > 1
    is_linear = is_matrix & pl.col("component").is_in(_LINEAR)
    parts = with_bytes(
        parts.with_columns(format=pl.when(is_linear).then(pl.lit(_QUANTIZED)).otherwise(pl.lit("bf16"))),
        into="quantized",
    )
    count = pl.col("layer_count") * pl.col("copies")
    met = pl.when(pl.col("component") == "experts").then(pl.coalesce("experts_per_token", "copies")).otherwise("copies")
    width = pl.when(is_linear).then(pl.col("rows") + pl.col("columns")).otherwise(0)
    parts = parts.with_columns(width=width * met, one_layer=pl.col("params") // pl.col("layer_count"))
    layers = (
        parts.filter(pl.col("layer_ids").list.len() > 0, ~pl.col("component").is_in(["vision", "audio"]))
        .explode("layer_ids")
        .group_by("model_id", "layer_ids")
        .agg(pl.col("width").sum(), pl.col("one_layer").sum())
        .group_by("model_id")
        .agg(
            layer_width=pl.col("width").max(), all_widths=pl.col("width").sum(), layer_params=pl.col("one_layer").max()
        )
    )
    per_rank = (pl.col("rows") + pl.col("columns")) * count
    sums = parts.group_by("model_id").agg(
        params=pl.col("params").sum(),
        quantized_bytes=(pl.col("quantized") * count).sum(),
        factor_elements=per_rank.filter(is_matrix).sum(),
        outside_params=pl.col("params").filter(pl.col("layer_ids").list.len() == 0).max().fill_null(0),
        **{
            f"lora_width_{t}": per_rank.filter(is_matrix & pl.col("component").is_in(c)).sum()
            for t, c in LORA_TARGETS.items()
        },
    )
    return (
        facts.drop("experts", "experts_per_token")
        .join(sums, on="model_id", how="inner", validate="1:1")
        .join(layers, on="model_id", how="left", validate="1:1")
        .with_columns(widest_params=pl.max_horizontal("outside_params", "layer_params"))
        .drop("outside_params")
    )


def finetune(
    models: pl.DataFrame, tensors: pl.DataFrame, wanted: pl.DataFrame, *, factors: Factors = FACTORS
) -> pl.DataFrame:
    """Rows of `wanted`, in order, with the bytes of one GPU: finetune_bytes and its parts, trainable_params, `error`.

    wanted: model_id, method (full, lora, qlora), lora_rank, optimizer (OPTIMIZERS, or with `-fused`), sequence_tokens,
    batch (sequences of one GPU), is_checkpointed, gpu_count, sharding (SHARDINGS; blank: zero3 on several GPUs);
    optional lora_targets (LORA_TARGETS), offloaded_share (of the checkpoints, in the host's memory; 0) and loss
    (LOSSES). Blanks are the defaults of the field: full, adamw, checkpointed, one sequence of 2048, whole logits.
    A row without figures says why in `error`.
    """
    asked = _with_defaults(wanted).join(
        model_shapes(models, tensors), on="model_id", how="left", validate="m:1", maintain_order="left"
    )
    asked = asked.join(OPTIMIZERS, on="optimizer", how="left", validate="m:1", maintain_order="left")
    asked = asked.with_columns(error=_error())
    rows = asked.with_columns(_counts()).with_columns(**_states(), **_per_token(factors))
    parts = {f"finetune_{name}_bytes": value for name, value in _parts(factors).items()}
    rows = rows.with_columns(
        pl.when(pl.col("error").is_null()).then(v.round(0)).cast(pl.Int64).alias(n) for n, v in parts.items()
    )
    rows = rows.with_columns(
        finetune_bytes=pl.when(pl.col("error").is_null()).then(pl.sum_horizontal(*parts)),
        trainable_params=pl.when(pl.col("error").is_null()).then(pl.col("trained")).cast(pl.Int64),
    )
    return pl.concat([wanted.drop(c for c in _OUTPUT if c in wanted.columns), rows.select(_OUTPUT)], how="horizontal")


def _with_defaults(wanted: pl.DataFrame) -> pl.DataFrame:
    optional = {"lora_targets": pl.String, "offloaded_share": pl.Float64, "loss": pl.String}
    rows = wanted.with_columns(pl.lit(None, t).alias(c) for c, t in optional.items() if c not in wanted.columns)
    word = pl.col("optimizer").str.to_lowercase().str.replace_all("_", "-").fill_null("adamw")
    gpus = pl.col("gpu_count").fill_null(1)
    return rows.select(
        "model_id",
        pl.col("method").str.to_lowercase().fill_null("full"),
        pl.col("lora_rank").fill_null(DEFAULT_RANK),
        pl.col("sequence_tokens").fill_null(DEFAULT_SEQUENCE_TOKENS),
        pl.col("batch").fill_null(1),
        pl.col("is_checkpointed").fill_null(value=True),
        pl.col("sharding")
        .str.to_lowercase()
        .fill_null(pl.when(gpus > 1).then(pl.lit("zero3")).otherwise(pl.lit("none"))),
        pl.col("lora_targets").fill_null("all"),
        pl.col("offloaded_share").fill_null(0.0),
        pl.col("loss").str.to_lowercase().fill_null("whole"),
        gpu_count=gpus,
        is_fused=word.str.ends_with(_FUSED),
        optimizer=word.str.strip_suffix(_FUSED).replace(_ALIASES),
    )


def _error() -> pl.Expr:
    """Why a row has no figures, in one line."""

    def not_one_of(column: str, known: tuple[str, ...]) -> pl.Expr:
        words = pl.lit(f"not one of {', '.join(known)}")
        return pl.when(~pl.col(column).is_in(known)).then(
            pl.format("{}: {}: '{}'", pl.lit(column), words, pl.col(column))
        )

    return pl.coalesce(
        pl.when(pl.col("params").is_null()).then(pl.format("unknown model '{}'", "model_id")),
        not_one_of("method", METHODS),
        not_one_of("optimizer", tuple(OPTIMIZERS["optimizer"])),
        not_one_of("sharding", SHARDINGS),
        not_one_of("lora_targets", tuple(LORA_TARGETS)),
        not_one_of("loss", LOSSES),
    )


def _counts() -> list[pl.Expr]:
    """Adapter and trained parameters, and the bytes of the frozen or trained base."""
    width = pl.lit(None, pl.Int64)
    for targets in LORA_TARGETS:
        width = pl.when(pl.col("lora_targets") == targets).then(f"lora_width_{targets}").otherwise(width)
    is_full = pl.col("method") == "full"
    adapter = pl.when(is_full).then(0).otherwise(pl.col("lora_rank") * width)
    base = pl.when(pl.col("method") == "qlora").then("quantized_bytes").otherwise(_WEIGHT_BYTES * pl.col("params"))
    return [
        adapter.alias("adapters"),
        pl.when(is_full).then("params").otherwise(adapter).alias("trained"),
        base.cast(pl.Float64).alias("base_bytes"),
    ]


def _states() -> dict[str, pl.Expr]:
    """Bytes of gradients and optimizer before sharding; adapters keep no master copy."""
    is_full = pl.col("method") == "full"
    trained = pl.col("trained").cast(pl.Float64)
    at_once = pl.when(pl.col("is_fused") & is_full).then(pl.col("widest_params")).otherwise(trained)
    master = pl.when(is_full).then("master_bytes").otherwise(0.0)
    share = trained / pl.col("params")  # of the matrices whose rows and columns Adafactor sums
    factored = pl.when("is_factored").then(_FLOAT32 * pl.col("factor_elements") * share).otherwise(0.0)
    return {
        "gradient_bytes": _GRADIENT_BYTES * at_once,
        "state_bytes": trained * (pl.col("moment_bytes") + master) + factored,
    }


def _per_token(factors: Factors) -> dict[str, pl.Expr]:
    """Bytes that one token keeps: in the layers, and for the loss."""
    at_once = pl.col("loss").replace_strict(
        {"whole": 1.0, "chunked": factors.chunked_share, "fused": 0.0}, default=None, return_dtype=pl.Float64
    )
    logits = factors.logit_bytes * pl.col("vocab_size") * at_once
    inputs = 2.0 * pl.col("layers") * pl.col("hidden_size") * (1 - pl.col("offloaded_share"))
    # The layer at work is differentiated when the loss is done: only what it needs beyond the logits is on top.
    beyond = (2.0 * factors.working * pl.col("layer_width") - logits).clip(0)
    everything = 2.0 * factors.kept * pl.col("all_widths")
    return {
        "token_activation": pl.when("is_checkpointed").then(inputs + beyond).otherwise(everything),
        "token_logits": logits,
    }


def _parts(factors: Factors) -> dict[str, pl.Expr]:
    """Bytes of each part on one GPU. ZeRO 1, 2, 3 share out the states, the gradients too, the weights too."""
    gpus, sharding = pl.col("gpu_count"), pl.col("sharding")

    def shared(value: pl.Expr, *by: str) -> pl.Expr:
        return pl.when(sharding.is_in(by)).then(value / gpus).otherwise(value)

    whole = ("zero3", "fsdp")
    bytes_per_param = pl.col("base_bytes") / pl.col("params")
    gathered = pl.when(sharding.is_in(whole) & (gpus > 1)).then(
        _GATHERED_LAYERS * pl.col("layer_params") * bytes_per_param
    )
    tokens = (pl.col("sequence_tokens") * pl.col("batch")).cast(pl.Float64)
    return {
        "weights": shared(pl.col("base_bytes"), *whole) + gathered.fill_null(0.0),
        "adapter": shared(_WEIGHT_BYTES * pl.col("adapters").cast(pl.Float64), *whole),
        "gradients": shared(pl.col("gradient_bytes"), "zero2", *whole),
        "optimizer": shared(pl.col("state_bytes"), "zero1", "zero2", *whole),
        "activation": tokens * pl.col("token_activation"),
        "logits": tokens * pl.col("token_logits"),
        "overhead": pl.lit(factors.overhead_bytes),
    }


def with_smallest_gpu(rows: pl.DataFrame, gpus: pl.DataFrame, *, reserve_share: float = 0.0) -> pl.DataFrame:
    """Add `smallest_gpu_id`: the GPU with the least memory that holds finetune_bytes, and comes gpu_count together.

    gpus: GPU_SCHEMA, cut to those that the method runs on. Memory is what the runtime gives out (torch_memory_bytes,
    else memory_bytes), less `reserve_share`. Null: none does, or there are no figures.
    """
    usable = (pl.coalesce("torch_memory_bytes", "memory_bytes") * (1 - reserve_share)).cast(pl.Int64)
    devices = gpus.select("gpu_id", "max_gpu_count", usable=usable).drop_nulls().sort("usable", "gpu_id")
    counts = rows["gpu_count"].fill_null(1).unique().to_list()
    parts = []
    indexed = rows.with_row_index("_row").with_columns(_count=pl.col("gpu_count").fill_null(1))
    for count in counts:  # a handful of GPU counts
        part = indexed.filter(pl.col("_count") == count).sort("finetune_bytes")
        able = devices.filter(pl.col("max_gpu_count") >= count).select("usable", smallest_gpu_id="gpu_id")
        known = part.filter(pl.col("finetune_bytes").is_not_null())
        found = known.join_asof(able, left_on="finetune_bytes", right_on="usable", strategy="forward")
        parts += [found.drop("usable"), part.filter(pl.col("finetune_bytes").is_null())]
    return pl.concat(parts, how="diagonal").sort("_row").drop("_row", "_count")


def training_s(tokens: pl.Expr, peak_flop_per_s: pl.Expr) -> pl.Expr:
    """Seconds to train on `tokens` tokens on gpu_count GPUs of that 16-bit peak, at TRAINING_EFFICIENCY.

    A parameter costs 2 operations forward, 2 for the gradient of its input and 2 for its own, which frozen ones do not
    need; checkpointing adds one more forward. Reads `method`, `is_checkpointed`, `params_active` and `gpu_count`.
    """
    own = pl.when(pl.col("method") == "full").then(2).otherwise(0)
    again = pl.when(pl.col("is_checkpointed")).then(2).otherwise(0)
    operations = (4.0 + own + again) * pl.col("params_active") * tokens
    return operations / (peak_flop_per_s * pl.col("gpu_count") * TRAINING_EFFICIENCY)
