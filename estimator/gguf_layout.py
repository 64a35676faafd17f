"""The tensors of a GGUF file: what llama.cpp's converter makes of a checkpoint's.

Source: llama.cpp's conversion scripts and gguf-py's tensor names. Experts are stacked into one tensor for each role,
fused matrices cut or kept as the model class wants them, norms, routers and convolution kernels written in F32;
towers go to a file of their own and are left out here.
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.gguf_rules import LAYER_BITS, unsplit_models, with_effects

CASE = ["model_id", "build", "has_imatrix"]
_ELSEWHERE = ("vision", "audio")
_VALUE = ("attn_v", "attn_qkv", "attn_kv_b")
_DOWN = ("ffn_down", "ffn_down_exps", "ffn_down_shexp")
_FEED_FORWARD = (*_DOWN, *(f"ffn_{part}{kind}" for part in ("gate", "up") for kind in ("", "_exps", "_shexp")))
_F32 = "F32"


def gguf_layout(
    models: pl.DataFrame, tensors: pl.DataFrame, cases: pl.DataFrame, tables: Mapping[str, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(cases with their flags, layout) of distinct `cases` (model_id, build, has_imatrix).

    layout: the columns of CASE, `component`, `role`, `rule_role` (the role whose rule decides), `tensor`, `layer_ids`
    (Int32 list), `position` (LAYER_BITS), `rows`, `columns`, `copies`, `kept_as`: one row for the layers of a tensor
    that lie in the same position.
    """
    facts = models.select(
        "model_id", "model_type", "attention_heads", "kv_heads", "experts", "layers", "mtp_layers", "kv_lora_rank"
    )
    flagged = with_effects(
        cases.join(facts, on="model_id", how="left", validate="m:1"), tables["gguf_effect"]
    ).with_columns(pl.col("has_split_latent") & ~unsplit_models(tables["llamacpp_model_rule"]))
    pieces = flagged.join(_named(tensors, tables["gguf_name"]), on="model_id").filter(
        pl.col("is_in_memory") & (pl.col("component") != "mtp") | ((pl.col("component") == "mtp") & pl.col("has_mtp"))
    )
    pieces = _with_head(_split(pieces), flagged)
    flagged = flagged.join(_first_layer_attention(pieces), on=CASE, how="left", validate="1:1")
    return _with_flags(flagged), _positioned(_with_rule_role(pieces))


def _named(tensors: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """`tensors` with roles (list), split and kept_as, by the first pattern that matches; else the name's last part."""
    inner = pl.col("tensor").str.replace(r"^.*\{layer\}\.", "")
    found = pl.coalesce(
        pl.when(pl.col("inner").str.contains(pattern)).then(pl.lit(i)) for i, pattern in enumerate(names["pattern"])
    )
    own = pl.col("inner").str.replace(r"\.weight$", "").str.replace(r"^.*\.", "")
    known = (
        tensors.select("tensor")
        .unique()
        .with_columns(inner=inner)
        .with_columns(found=found)
        .join(names.with_row_index("found").cast({"found": pl.Int32}), on="found", how="left", validate="m:1")
        .with_columns(is_bias=pl.col("inner").str.ends_with("bias"), own=own, roles=pl.col("roles").str.split("|"))
        .select("tensor", "roles", "split", "kept_as", "is_bias", "own")
    )
    is_vector = (pl.col("columns") == 1) | (pl.col("rows") == 1)
    is_other = is_vector | (pl.col("component") == "norm")
    first = pl.col("roles").list.first()
    whole = (
        pl.when(pl.col("is_bias") & first.is_not_null())
        .then(pl.format("{}.bias", first))
        .when(is_other)
        .then(pl.coalesce(pl.when(pl.col("component") != "norm").then(first), "own"))
        .otherwise(pl.coalesce(first, "own"))
    )
    return (
        tensors.filter(~pl.col("component").is_in(_ELSEWHERE))
        .join(known, on="tensor", how="left", validate="m:1")
        .with_columns(
            kept_as=pl.when(is_other | pl.col("is_bias")).then(pl.lit(_F32)).otherwise("kept_as"),
            split=pl.when(is_other).then(None).otherwise("split"),
        )
        .with_columns(roles=pl.when(pl.col("split").is_null()).then(pl.concat_list(whole)).otherwise("roles"))
    )


def _split(pieces: pl.DataFrame) -> pl.DataFrame:
    """One row a GGUF tensor, with its own rows, columns and copies.

    halves: gate and up in equal parts. value_last: the last part has the rows of the recurrent value (what ssm_out
    reads). query_key_value: in proportion of the heads. latent_heads: MLA's second projection, whole in old files, else
    one matrix a head for keys (transposed) and one for values.
    """
    value = pieces.filter(pl.col("roles").list.contains("ssm_out")).group_by(CASE).agg(value=pl.col("columns").max())
    output = pieces.filter(pl.col("roles").list.contains("attn_output") & (pl.col("columns") > 1))
    head_value = output.group_by(CASE).agg(width=pl.col("columns").max())
    parts = (
        pieces.join(value, on=CASE, how="left", validate="m:1")
        .join(head_value, on=CASE, how="left", validate="m:1")
        .with_columns(part=pl.int_ranges(pl.col("roles").list.len()))
        .explode("roles", "part")
        .rename({"roles": "role"})
    )
    is_latent = pl.col("split") == "latent_heads"
    is_whole = pl.col("part") == 0
    parts = parts.filter(is_latent.fill_null(False).not_() | (is_whole != pl.col("has_split_latent")))
    heads, kv_heads = pl.col("attention_heads"), pl.coalesce("kv_heads", "attention_heads")
    head_width = pl.col("width") // heads
    is_key, is_latent_value = is_latent & (pl.col("part") == 1), is_latent & (pl.col("part") == 2)
    rows, columns = pl.col("rows"), pl.col("columns")
    return parts.with_columns(
        rows=pl.when(pl.col("split") == "halves")
        .then(rows // 2)
        .when(pl.col("split") == "value_last")
        .then(pl.when(is_whole).then(rows - pl.col("value")).otherwise("value"))
        .when(pl.col("split") == "query_key_value")
        .then(rows * pl.when(is_whole).then(heads).otherwise(kv_heads) // (heads + 2 * kv_heads))
        .when(is_key)
        .then(columns)
        .when(is_latent_value)
        .then(head_width)
        .otherwise(rows),
        columns=pl.when(is_key).then(rows // heads - head_width).otherwise(columns),
        copies=pl.when(is_key | is_latent_value).then(heads).otherwise("copies"),
        role=pl.when(pl.col("has_fused_qkv") & pl.col("role").is_in(["attn_q", "attn_k", "attn_v"]))
        .then(pl.lit("attn_qkv"))
        .otherwise("role"),
    )


def _with_head(pieces: pl.DataFrame, flagged: pl.DataFrame) -> pl.DataFrame:
    """`pieces` with `is_tied` (no output matrix of its own), and the copy that some files hold of a tied one."""
    headed = pieces.filter(pl.col("role") == "output").select(CASE).unique()
    copy = (
        pieces.filter(pl.col("has_output_copy") & (pl.col("role") == "token_embd"))
        .join(headed, on=CASE, how="anti")
        .with_columns(role=pl.lit("output"), component=pl.lit("lm_head"))
    )
    untied = pl.concat([headed, copy.select(CASE).unique()]).with_columns(is_tied=False)
    return (
        pl.concat([pieces, copy])
        .join(untied, on=CASE, how="left", validate="m:1")
        .with_columns(pl.col("is_tied").fill_null(True))
    )


def _first_layer_attention(pieces: pl.DataFrame) -> pl.DataFrame:
    """CASE, has_first_attention: whether layer 0 has keys of its own."""
    starts = pl.col("layer_ids").list.first() == 0
    return pieces.group_by(CASE).agg(has_first_attention=((pl.col("role") == "attn_k") & starts).any())


def _with_flags(flagged: pl.DataFrame) -> pl.DataFrame:
    """The flags that `gguf_rule` asks for; heads in groups are judged by the KV heads that llama.cpp sees."""
    heads, kv_heads = pl.col("attention_heads").fill_null(0), pl.coalesce("kv_heads", "attention_heads").fill_null(0)
    experts = pl.col("experts").fill_null(0)
    is_latent = (pl.col("kv_lora_rank") > 0).fill_null(False)
    seen = (
        pl.when(is_latent)
        .then(pl.when(pl.col("has_split_latent")).then(1).otherwise(heads))
        .when(pl.col("has_kv_heads_by_layer") & ~pl.col("has_first_attention"))
        .then(0)
        .otherwise(kv_heads)
    )
    return flagged.with_columns(
        is_gqa4=((seen > 0) & (heads // pl.when(seen > 0).then(seen).otherwise(1) >= 4)),
        is_moe=experts > 1,
        is_moe4=experts >= 4,
        is_moe8=experts == 8,
        is_70b=pl.col("is_70b_any") | (pl.col("is_70b") & (heads != kv_heads)),
    )


def _with_rule_role(pieces: pl.DataFrame) -> pl.DataFrame:
    role = pl.col("role")
    is_layer_embedding = role == "per_layer_token_embd"
    return pieces.with_columns(
        rule_role=pl.when(pl.col("is_tied") & (role == "token_embd"))
        .then(pl.lit("output"))
        .when(is_layer_embedding & pl.col("is_tied") & pl.col("is_layer_embedding_head"))
        .then(pl.lit("output"))
        .when(is_layer_embedding & pl.col("is_layer_embedding_ruled"))
        .then(pl.lit("token_embd"))
        .when(pl.col("is_qkv_value") & role.is_in(_VALUE))
        .then(pl.lit("attn_v"))
        .otherwise(role),
        kept_as=pl.when(pl.col("has_mxfp4_experts") & role.str.ends_with("_exps"))
        .then(pl.lit("MXFP4"))
        .otherwise("kept_as"),
    )


def _positioned(pieces: pl.DataFrame) -> pl.DataFrame:
    """`pieces` cut into groups of layers with the same position; only roles whose rules ask for it are cut."""
    pieces = pieces.with_row_index("piece")
    is_value = (pl.col("rule_role") == "attn_v") & pl.col("kept_as").is_null()
    is_feed = pl.col("role").is_in(_FEED_FORWARD) & pl.col("kept_as").is_null()
    value_count = pl.col("layer_count").filter(pl.col("role").is_in(_VALUE) & pl.col("kept_as").is_null()).sum()
    by_layer = (
        pieces.filter(is_value | is_feed)
        .with_columns(is_value=is_value, is_down=pl.col("role").is_in(_DOWN))
        .join(pieces.group_by(CASE).agg(values=value_count), on=CASE, how="left", validate="m:1")
        .select(
            *CASE,
            "piece",
            "role",
            "is_value",
            "is_down",
            "values",
            "layers",
            "mtp_layers",
            "has_mtp",
            "experts",
            "layer_ids",
        )
        .explode("layer_ids")
        .rename({"layer_ids": "layer"})
        .sort(*CASE, "layer", "role", "piece")
    )
    order = pl.int_range(pl.len())
    by_role = order.over([*CASE, "role"])
    by_value, by_down = order.over([*CASE, "is_value"]), order.over([*CASE, "is_down"])
    blocks = pl.col("layers") + pl.when("has_mtp").then("mtp_layers").otherwise(0)
    grouped = (
        by_layer.with_columns(
            i=pl.when("is_value").then(by_value).when(pl.col("experts") > 1).then("layer").otherwise(by_role),
            n=pl.when("is_value").then("values").otherwise(blocks),
            counted=pl.when("is_down").then(by_down).otherwise(by_role),
        )
        .with_columns(position=_position(pl.col("i"), pl.col("n"), pl.col("counted")))
        .group_by("piece", "position")
        .agg(layer_ids=pl.col("layer"))
    )
    rest = pieces.join(grouped, on="piece", how="anti").select("piece", "layer_ids", position=pl.lit(0, pl.Int64))
    groups = pl.concat([grouped.select(rest.columns), rest])
    return (
        pieces.select(
            *CASE, "piece", "component", "role", "rule_role", "tensor", "rows", "columns", "copies", "kept_as"
        )
        .join(groups, on="piece", how="left", validate="1:m")
        .drop("piece")
    )


def _position(i: pl.Expr, n: pl.Expr, counted: pl.Expr) -> pl.Expr:
    eighth, last_eighth = n // 8, 7 * n // 8
    is_set = {
        "first_2": i < 2,
        "first_4": i < 4,
        "first_sixteenth": i < n // 16,
        "first_eighth": i < eighth,
        "middle": (i >= eighth) & (i < last_eighth),
        "more": (i < eighth) | (i >= last_eighth) | ((i - eighth) % 3 == 2),
        "counted_eighth": counted < eighth,
    }
    return pl.sum_horizontal(is_set[name].cast(pl.Int64) * bit for name, bit in LAYER_BITS.items())
