CREATE MACRO gpus_for(model, context := 8192, users := 1) AS TABLE
WITH least AS (
    SELECT h.*
    FROM held_by(model, context := context, users := users) AS h
    QUALIFY row_number() OVER (PARTITION BY h.gpu_id ORDER BY h.gpu_count) = 1
)

SELECT
    g.gpu_id,
    g.name AS gpu_name,
    g.vendor,
    gib(g.memory_bytes) AS memory_gib,
    g.is_unified_memory,
    h.gpu_count,
    h.precision_class,
    h.precision_id,
    h.engine_id,
    h.context_tokens,
    h.users,
    gib(h.required_bytes) AS required_gib,
    gib(h.headroom_bytes) AS headroom_gib,
    s.decode_tokens_per_s,
    s.decode_tokens_per_s_low,
    s.decode_tokens_per_s_high,
    s.ttft_ms,
    c.usd_per_hour,
    c.purchase_usd
FROM gpu AS g
LEFT JOIN least AS h ON g.gpu_id = h.gpu_id
LEFT JOIN speed AS s
    ON h.precision_id = s.precision_id
    AND h.engine_id = s.engine_id
    AND h.gpu_id = s.gpu_id
    AND h.gpu_count = s.gpu_count
    AND h.context_tokens = s.context_tokens
    AND s.model_id = model_key(model)
LEFT JOIN cost AS c
    ON h.precision_id = c.precision_id
    AND h.engine_id = c.engine_id
    AND h.gpu_id = c.gpu_id
    AND h.gpu_count = c.gpu_count
    AND h.context_tokens = c.context_tokens
    AND c.model_id = model_key(model)
WHERE g.is_released
ORDER BY h.gpu_count * g.memory_bytes NULLS LAST, g.gpu_id;
COMMENT ON MACRO TABLE gpus_for IS -- noqa: PRS
'gpus_for(model, context, users): one row per GPU: the smallest number of them that holds the model for so many users, at the precision nearest to 16 bit, with speed and prices; null where no number of the grid does [GiB, tokens/s, ms, USD/h, USD]; source: fit, speed, cost, gpu';
