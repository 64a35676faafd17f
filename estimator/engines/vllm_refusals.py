"""Why vLLM refuses to start, as values of `limited_by`."""

import polars as pl


def is_divisible() -> pl.Expr:
    """Whether tensor parallelism divides the attention heads, and KV heads divide it or are divided by it.

    "Total number of attention heads must be divisible by tensor parallel size" (vllm/config/model.py); the KV heads are
    asserted by each model. Latent attention has no KV heads to divide.
    """
    tensor, heads, kv = pl.col("tensor_parallel"), pl.col("attention_heads"), pl.col("kv_heads")
    kv_divides = pl.when(kv >= tensor).then(kv % tensor == 0).otherwise(tensor % kv == 0)
    is_latent = pl.col("kv_lora_rank").is_not_null()
    return (heads % tensor == 0).fill_null(value=True) & (is_latent | kv_divides.fill_null(value=True))


def refusal() -> pl.Expr:
    """The one reason, null where it starts: unsupported, tp_divisibility, weights, context, kv_cache, unknown.

    unsupported: a KV dtype that is not vLLM's ("invalid choice" for --kv-cache-dtype), or keys and values that differ.
    weights: nothing is left for the cache ("No available memory for the cache blocks"). context: above the model's
    extended context ("greater than the derived max_model_len"). kv_cache: one request of max_model_len needs more
    blocks than there are ("To serve at least one request with the model's max seq len").
    """
    return (
        pl.when(pl.col("kv_element_bytes").is_null())
        .then(pl.lit("unsupported"))
        .when(~is_divisible())
        .then(pl.lit("tp_divisibility"))
        .when(pl.col("kv_available_bytes") <= 0)
        .then(pl.lit("weights"))
        .when(pl.col("context_tokens") > pl.coalesce("extended_context_tokens", "max_context_tokens"))
        .then(pl.lit("context"))
        .when(pl.col("has_kv") & (pl.col("request_blocks") > pl.col("usable_blocks")))
        .then(pl.lit("kv_cache"))
        .when(pl.col("kv_available_bytes").is_null() | pl.col("has_kv").is_null())
        .then(pl.lit("unknown"))
        .otherwise(pl.lit(None, pl.String))
    )
