"""One GPU's share of a model's weights under tensor, pipeline and expert parallelism, as vLLM cuts them.

Source: vLLM's parallel layers. Column-parallel matrices lose rows, row-parallel ones columns; norms, routers and
latent projections are whole on every rank; K and V heads are repeated once there are more ranks than heads; the
vocabulary is padded to 64 rows and then split; experts are split across ranks whole when expert parallelism is on.
"""

import polars as pl

from fitmart.estimator.formats import with_bytes
from fitmart.estimator.frames import WEIGHT_SHARD_SCHEMA, conform
from fitmart.estimator.tensor_formats import asked, tensor_formats

VOCABULARY_PADDING = 64

# MXFP4 experts are padded to what the kernel takes: the expert's width on each rank, and the hidden size.
MXFP4_PADDING = pl.DataFrame(
    [
        ("marlin", 128, 256),
        ("triton", 64, 64),
        ("trtllm", 256, 256),
        ("cutlass", 128, 128),
        ("rocm", 256, 256),
        ("none", 1, 1),
    ],
    schema={"moe_backend": pl.String, "width_multiple": pl.Int64, "hidden_multiple": pl.Int64},
    orient="row",
)
DEFAULT_MOE_BACKEND = "marlin"

_CUT = ["tensor_parallel", "pipeline_parallel", "expert_parallel", "moe_backend"]
_KEY = ["model_id", "precision_id", *_CUT]
_TOWERS = ("vision", "audio")


def _ceil_div(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return (a + b - 1) // b


def _round_up(value: pl.Expr, multiple: pl.Expr | int) -> pl.Expr:
    return (value + multiple - 1) // multiple * multiple


def weight_shards(
    models: pl.DataFrame, tensors: pl.DataFrame, precisions: pl.DataFrame, wanted: pl.DataFrame
) -> pl.DataFrame:
    """WEIGHT_SHARD_SCHEMA, one row for each row of `wanted`, in its order: the bytes of the fullest GPU.

    `wanted`: model_id, precision_id, tensor_parallel, pipeline_parallel, expert_parallel (1: experts are split like
    other matrices), optionally moe_backend (MXFP4_PADDING; default marlin). `error` as in footprint, and for GGUF,
    whose tensors llama.cpp places layer by layer.
    """
    if "moe_backend" not in wanted.columns:
        wanted = wanted.with_columns(moe_backend=pl.lit(DEFAULT_MOE_BACKEND))
    requests = asked(wanted.select(_KEY), models, precisions).with_columns(
        error=pl.coalesce(
            "error",
            pl.when(pl.col("container") == "gguf").then(pl.lit("a GGUF file is placed by llama.cpp, layer by layer")),
        )
    )
    distinct = requests.filter(pl.col("error").is_null()).unique()
    loaded = tensors.filter(pl.col("is_in_memory") & (pl.col("component") != "mtp")).with_row_index("piece")
    pieces = tensor_formats(distinct, loaded, precisions).join(
        MXFP4_PADDING, on="moe_backend", how="left", validate="m:1"
    )
    sized = with_bytes(_cut(pieces), rows="rank_rows", columns="rank_columns", format_id="memory_format").with_columns(
        layer_bytes=pl.col("bytes") * pl.col("rank_copies")
    )
    stages = _stage_counts(distinct.select("model_id", "pipeline_parallel").unique(), loaded, models)
    fullest = (
        sized.join(stages, on=["piece", "pipeline_parallel"], how="inner")
        .group_by(*_KEY, "stage")
        .agg((pl.col("layer_bytes") * pl.col("stage_layers")).sum().alias("weights_bytes"))
        .group_by(_KEY)
        .agg(pl.col("weights_bytes").max())
    )
    answers = requests.select(*_KEY, "error").join(
        fullest, on=_KEY, how="left", nulls_equal=True, validate="m:1", maintain_order="left"
    )
    return conform(answers, WEIGHT_SHARD_SCHEMA, stage="weight_shards")


def _cut(pieces: pl.DataFrame) -> pl.DataFrame:
    """`pieces` with rank_rows, rank_columns, rank_copies: what one rank holds of one layer's tensor."""
    is_expert = pl.col("component") == "experts"
    is_whole_expert = is_expert & (pl.col("expert_parallel") > 1)
    ranks = pl.when(is_whole_expert).then(1).otherwise(pl.col("tensor_parallel"))
    ways = pl.min_horizontal(ranks, pl.col("tp_max_shards").fill_null(2**31))
    is_vocabulary = pl.col("component").is_in(["embedding", "lm_head"])
    rows = pl.when(is_vocabulary).then(_round_up(pl.col("rows"), VOCABULARY_PADDING)).otherwise(pl.col("rows"))
    cut = pieces.with_columns(
        rank_rows=pl.when(pl.col("tp_axis") == "rows").then(_ceil_div(rows, ways)).otherwise(rows),
        rank_columns=pl.when(pl.col("tp_axis") == "columns")
        .then(_ceil_div(pl.col("columns"), ways))
        .otherwise(pl.col("columns")),
        rank_copies=pl.when(is_expert).then(_ceil_div(pl.col("copies"), pl.col("expert_parallel"))).otherwise("copies"),
    )
    is_padded = is_expert & (pl.col("memory_format") == "mxfp4")
    is_up = pl.col("tp_axis") == "rows"
    # gate and up in one matrix: each half is padded
    halves = pl.when(pl.col("tensor").str.contains("gate_up", literal=True)).then(2).otherwise(1)
    width, hidden = pl.col("width_multiple"), pl.col("hidden_multiple")
    return cut.with_columns(
        rank_rows=pl.when(is_padded)
        .then(
            pl.when(is_up)
            .then(_round_up(pl.col("rank_rows"), width * halves))
            .otherwise(_round_up(pl.col("rank_rows"), hidden))
        )
        .otherwise("rank_rows"),
        rank_columns=pl.when(is_padded)
        .then(
            pl.when(is_up)
            .then(_round_up(pl.col("rank_columns"), hidden))
            .otherwise(_round_up(pl.col("rank_columns"), width))
        )
        .otherwise("rank_columns"),
    )


def _stage_counts(requests: pl.DataFrame, tensors: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """piece, pipeline_parallel, stage, stage_layers: how many layers of each tensor each pipeline stage holds.

    vLLM gives every stage layers // stages, and the remainder one each to the stages before the last. Towers are on
    every stage; the embedding is on the first, the head and the last norm on the last; a tied embedding is on both.
    """
    facts = models.select("model_id", "layers", "is_tied")
    stages = (
        requests.join(facts, on="model_id", how="left", validate="m:1")
        .with_columns(stage=pl.int_ranges(pl.col("pipeline_parallel")))
        .explode("stage")
    )
    stage, ways = pl.col("stage"), pl.col("pipeline_parallel")
    base, extra = pl.col("layers") // ways, pl.col("layers") % ways
    first_extra = ways - 1 - extra
    start = stage * base + (stage - first_extra).clip(0, extra)
    length = base + ((stage >= first_extra) & (stage < ways - 1)).cast(pl.Int64)
    stages = stages.with_columns(start=start, end=start + length, is_last=stage == ways - 1)
    pieces = tensors.select("piece", "model_id", "component", "layer_ids", "layer_count").join(stages, on="model_id")
    is_tower = pl.col("component").is_in(_TOWERS)
    is_layered = (pl.col("layer_ids").list.len() > 0) & ~is_tower
    layered = (
        pieces.filter(is_layered)
        .explode("layer_ids")
        .filter(pl.col("layer_ids").is_between("start", "end", closed="left"))
        .group_by("piece", "pipeline_parallel", "stage")
        .agg(pl.len().cast(pl.Int64).alias("stage_layers"))
    )
    is_first = pl.col("stage") == 0
    is_held = (
        pl.when(pl.col("component") == "embedding")
        .then(is_first | (pl.col("is_last") & pl.col("is_tied")))
        .otherwise(pl.col("is_last"))
    )
    single = pieces.filter(~is_layered & (is_tower | is_held)).select(
        "piece", "pipeline_parallel", "stage", pl.col("layer_count").alias("stage_layers")
    )
    return pl.concat([layered.select(single.columns), single])
