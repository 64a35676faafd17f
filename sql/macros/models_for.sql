CREATE MACRO models_for(gpu, gpus := 1, context := 8192, users := 1) AS TABLE
WITH
wanted AS (
    SELECT
        k.model_id,
        min(k.context_tokens) AS context_tokens
    FROM kv_cache AS k
    WHERE k.context_tokens >= context
    GROUP BY k.model_id
),

held AS (
    SELECT
        f.model_id,
        f.precision_id,
        f.engine_id,
        f.context_tokens,
        f.users,
        f.required_bytes,
        f.headroom_bytes,
        p.precision_class
    FROM fit AS f
    INNER JOIN precision AS p ON f.precision_id = p.precision_id
    INNER JOIN footprint AS w ON f.model_id = w.model_id AND f.precision_id = w.precision_id
    INNER JOIN model AS m ON f.model_id = m.model_id
    INNER JOIN wanted AS n ON f.model_id = n.model_id AND f.context_tokens = n.context_tokens
    WHERE
        f.gpu_id = gpu_key(gpu)
        AND f.gpu_count = gpus
        AND f.verdict = 'fits'
        AND coalesce(f.users, users) >= users
    QUALIFY
        row_number() OVER (
            PARTITION BY f.model_id
            ORDER BY
                floor(coalesce(p.bits_per_weight, 8.0 * w.weights_total_bytes / nullif(m.params_total, 0))) DESC,
                f.users DESC,
                f.precision_id ASC
        ) = 1
)

SELECT
    h.model_id,
    round(m.params_total / 1e9, 2) AS params_total_billion,
    round(m.params_active / 1e9, 2) AS params_active_billion,
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
    s.ttft_ms
FROM held AS h
INNER JOIN model AS m ON h.model_id = m.model_id
LEFT JOIN speed AS s
    ON h.model_id = s.model_id
    AND h.precision_id = s.precision_id
    AND h.engine_id = s.engine_id
    AND h.context_tokens = s.context_tokens
    AND s.gpu_id = gpu_key(gpu)
    AND s.gpu_count = gpus
ORDER BY m.params_total DESC, h.model_id ASC;
COMMENT ON MACRO TABLE models_for IS -- noqa: PRS
'models_for(gpu, gpus, context, users): one row per model that so many of that GPU hold for so many users of that context, at the precision nearest to 16 bit, the largest first [10^9, count, GiB, tokens/s, ms]; source: fit, speed, model';
