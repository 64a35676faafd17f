"""What vLLM's profile run adds to the weights: the activation peak, memory outside torch, the CUDA graphs.

The profile run is an encoder pass (multimodal models), one forward of max_num_batched_tokens, then the sampler over
max_num_seqs rows; the largest of them is reserved. With default settings that is the sampler.
"""

import polars as pl

from fitmart.estimator.engines.vllm_rules import VllmRules, holds

_FLOAT, _HALF = 4, 2  # bytes
# A vision model whose family has no row in vllm_vision.
_ITEM_TOKENS, _PATCHES_PER_TOKEN, _HIDDEN_COPIES = 1024, 4, 4


def with_activation(rows: pl.DataFrame, tensors: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """Add sampler_bytes, forward_bytes, encoder_bytes, activation_bytes, non_torch_bytes, cuda_graph_bytes
    (what of graph_estimate_bytes is reserved) [Int64].

    Reads the columns of `with_settings` and `state_bytes_per_sequence`. Row order is kept.
    """
    rows = _with_overheads(rows, rules)
    rows = _with_encoder(rows, tensors, rules).with_columns(
        sampler_bytes=_sampler().cast(pl.Int64), forward_bytes=_forward().cast(pl.Int64)
    )
    # V0 keeps recurrent states for every sequence outside the block pool, made during the profile run.
    v0_states = (
        pl.when(pl.col("engine_core") == "v0")
        .then(pl.col("sequences") * pl.col("state_bytes_per_sequence"))
        .otherwise(0)
    )
    peak = pl.max_horizontal(
        pl.col("encoder_bytes"),
        pl.col("encoder_output_bytes") + pl.max_horizontal("sampler_bytes", "forward_bytes"),
    )
    return rows.with_columns(
        activation_bytes=peak + v0_states,
        non_torch_bytes=pl.col("non_torch_bytes") + pl.col("cuda_context_bytes").cast(pl.Int64),
        graph_estimate_bytes=_graphs().cast(pl.Int64),
    ).with_columns(cuda_graph_bytes=pl.when(pl.col("is_graph_reserved") > 0).then("graph_estimate_bytes").otherwise(0))


def _with_overheads(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """non_torch_bytes and cublas_workspace_bytes, by core, version, tensor parallelism and capability: first match."""
    kinds = ["version_key", "engine_core", "tensor_parallel", "capability"]
    distinct = rows.select(kinds).unique().with_row_index("kind")
    table = rules.overheads.rename({"engine_core": "rule_core"}).with_row_index("rank")
    matches = (
        holds()
        & (pl.col("tensor_parallel") >= pl.col("min_tensor_parallel").fill_null(1))
        & (pl.col("min_capability").is_null() | (pl.col("capability") >= pl.col("min_capability")))
    )
    names = ["non_torch_bytes", "cublas_workspace_bytes"]
    found = (
        distinct.join(table, how="cross")
        .filter(matches)
        .group_by("kind", "parameter")
        .agg(pl.col("value_bytes").sort_by("rank").first())
        .pivot(on="parameter", on_columns=names, index="kind", values="value_bytes")
    )
    bytes_of = distinct.join(found, on="kind", how="left", validate="1:1").drop("kind")
    return rows.join(bytes_of, on=kinds, how="left", nulls_equal=True, maintain_order="left")


def _sampler() -> pl.Expr:
    """copies × S·V·4 + Triton's scratch + the dummy forward's output and the last hidden states + cuBLAS workspace.

    Tensor parallelism does not divide it: the logits are gathered. Pooling models have no sampler.
    """
    unit = pl.col("vocab_size") * _FLOAT
    scratch = (
        pl.when("is_runner2").then(0).otherwise(pl.min_horizontal("sampler_buffer_rows", "profiled_sequences")) * unit
    )
    copies = pl.when("is_runner2").then("runner2_sampler_copies").otherwise("sampler_copies")
    hidden = _HALF * pl.col("hidden_size") * (pl.col("batch_tokens") + 2 * pl.col("profiled_sequences"))
    peak = copies * pl.col("profiled_sequences") * unit + scratch + hidden
    return pl.when("is_pooling").then(0).otherwise(peak) + pl.col("cublas_workspace_bytes")


def _forward() -> pl.Expr:
    """One layer at its widest, for a batch: four hidden states, the heads, and the feed-forward or the experts.

    Triton experts work in two scratch buffers, batch × top-k × max(N, H) and × max(2 N, H), N = expert width / TP.
    Matrices that multiply in 8 bit keep a quantized copy of their input beside.
    """
    hidden, tensor = pl.col("hidden_size"), pl.col("tensor_parallel")
    heads = pl.col("attention_heads").fill_null(0) + 2 * pl.col("kv_heads").fill_null(0)
    attention = heads * pl.col("head_dim").fill_null(0) / tensor
    width = pl.col("intermediate_size").fill_null(4 * hidden) / tensor
    expert = pl.coalesce("expert_intermediate_size", "intermediate_size").fill_null(0) / tensor
    used = pl.col("experts_per_token").fill_null(1)
    chunk = pl.min_horizontal("batch_tokens", "moe_chunk_tokens") / pl.col("batch_tokens")
    experts = used * (pl.max_horizontal(expert, hidden) + pl.max_horizontal(2 * expert, hidden)) * chunk
    widest = pl.when("is_moe").then(experts).otherwise(3 * width)
    inputs = (
        pl.when("is_moe").then(used * pl.max_horizontal(expert, hidden)).otherwise(pl.max_horizontal(width, hidden))
    )
    copy = pl.when("is_eight_bit").then(inputs).otherwise(0)
    return pl.col("batch_tokens") * (_HALF * (4 * hidden + attention + widest) + copy)


def _with_encoder(rows: pl.DataFrame, tensors: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """encoder_bytes, encoder_output_bytes, profiled_sequences: the profiled images' pass through the vision tower.

    Budget = max(batch, largest item) tokens, filled with items of the largest size. A patch is held as some hidden
    states (nine with rotary embeddings in fp32) and the MLP before and after its activation (cut by TP); a token's
    output as one hidden state of the language model, which stays while the language model runs.
    """
    layered = (pl.col("component") == "vision") & (pl.col("layer_count") > 1) & (pl.col("columns") > 1)
    towers = (
        tensors.filter(layered)
        .group_by("model_id")
        .agg(
            tower_width=pl.max_horizontal("rows", "columns").max(),
            tower_hidden=pl.min_horizontal("rows", "columns").min(),
        )
    )
    rows = rows.join(towers, on="model_id", how="left", maintain_order="left", validate="m:1").join(
        rules.visions, on="model_type", how="left", maintain_order="left", validate="m:1"
    )
    is_v0 = pl.col("engine_core") == "v0"
    # V0 does not start where the largest image is longer than the context; what started allowed no larger one.
    largest = pl.col("largest_item_tokens").fill_null(_ITEM_TOKENS)
    is_cut = is_v0 & pl.col("has_context")
    item = pl.when(is_cut).then(pl.min_horizontal(largest, "context_tokens")).otherwise(largest)
    filled = (pl.col("batch_tokens") // item).clip(1).clip(upper_bound=pl.col("sequences"))
    # V0's encoder-decoder runner gives every sequence its image.
    count = pl.when(is_v0, "is_crossed").then("sequences").otherwise(filled)
    hidden = pl.col("hidden_copies").fill_null(_HIDDEN_COPIES) * pl.col("tower_hidden")
    patch = hidden + 2 * pl.col("tower_width") / pl.col("tensor_parallel")
    output = _HALF * count * item * pl.col("hidden_size")
    pixels = _HALF * count * item * pl.col("patches_per_token").fill_null(_PATCHES_PER_TOKEN) * patch
    has_tower = pl.col("tower_width").is_not_null()
    # V0 profiles as many sequences as items of the largest size fill the batch.
    is_few = is_v0 & pl.col("is_multimodal")
    return rows.with_columns(
        encoder_output_bytes=pl.when(has_tower).then(output).otherwise(0),
        encoder_bytes=pl.when(has_tower).then(pixels.cast(pl.Int64)).otherwise(0),
        profiled_sequences=pl.when(is_few).then(count).otherwise("sequences"),
    ).drop("tower_width", "tower_hidden", "largest_item_tokens", "patches_per_token", "hidden_copies")


def _graphs() -> pl.Expr:
    """vLLM's own linear estimate: the first capture, then a step for each further size up to min(2 S, 512).

    Sizes captured are 1, 2, 4, then multiples of 8 to 256 and of 16 above. Nothing with enforce_eager.
    """
    largest = (2 * pl.col("sequences")).clip(upper_bound=512)
    sizes = 3 + pl.min_horizontal(largest, 256) // 8 + (largest - 256).clip(lower_bound=0) // 16
    estimate = pl.col("graph_first_bytes") + (sizes - 1) * pl.col("graph_step_bytes")
    return pl.when(pl.col("enforce_eager").fill_null(value=False)).then(0).otherwise(estimate)
