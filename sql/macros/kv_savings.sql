CREATE MACRO kv_savings(model, context := 8192) AS TABLE
WITH
layer AS (
    SELECT sum(c.layer_count) AS layer_count
    FROM model_cache AS c
    WHERE c.model_id = model_key(model) AND c.kind IN ('full', 'sliding', 'chunked', 'mla')
),

sized AS (
    SELECT
        cast(k.kv_precision AS VARCHAR) AS kv_precision,
        'as the model is built' AS attention,
        k.context_tokens,
        k.minimum_bytes AS kv_bytes
    FROM kv_cache AS k
    WHERE k.model_id = model_key(model) AND k.context_tokens = grid_context(model, context)
    UNION ALL
    -- A key and a value of every head, layer and token, 2 bytes each.
    SELECT
        'bf16' AS kv_precision,
        'full multi-head' AS attention,
        grid_context(model, context) AS context_tokens,
        2 * 2 * l.layer_count * m.attention_heads * m.head_dim * grid_context(model, context) AS kv_bytes
    FROM model AS m
    CROSS JOIN layer AS l
    WHERE m.model_id = model_key(model) AND l.layer_count > 0
)

SELECT
    s.attention,
    s.kv_precision,
    s.context_tokens,
    gib(s.kv_bytes) AS kv_gib,
    gib(max(s.kv_bytes) OVER (PARTITION BY s.attention) - s.kv_bytes) AS saved_by_precision_gib,
    round(max(s.kv_bytes) OVER () / nullif(s.kv_bytes, 0), 2) AS times_smaller_than_multi_head
FROM sized AS s
ORDER BY s.kv_bytes DESC, s.kv_precision ASC;
COMMENT ON MACRO TABLE kv_savings IS -- noqa: PRS
'kv_savings(model, context): one row per type of KV cache, and one for plain multi-head attention at 16 bit: bytes of one sequence, what 8 and 4 bit save, and how much smaller than multi-head attention it is [GiB, ratio]; source: kv_cache, model_cache, model';
