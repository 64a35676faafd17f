CREATE MACRO memory_by_context(model) AS TABLE
WITH
one_gpu AS (
    SELECT
        f.precision_id,
        f.context_tokens,
        min(f.required_bytes) AS required_low,
        max(f.required_bytes) AS required_high
    FROM fit AS f
    WHERE f.model_id = model_key(model) AND f.gpu_count = 1
    GROUP BY f.precision_id, f.context_tokens
),

cache AS (
    SELECT
        k.context_tokens,
        max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'bf16') AS kv_bytes,
        max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'fp8') AS kv8_bytes
    FROM kv_cache AS k
    WHERE k.model_id = model_key(model)
    GROUP BY k.context_tokens
)

SELECT
    w.precision_id,
    p.precision_class,
    c.context_tokens,
    gib(w.weights_total_bytes) AS weights_gib,
    gib(c.kv_bytes) AS kv_gib,
    gib(c.kv8_bytes) AS kv8_gib,
    gib(o.required_low - w.weights_total_bytes - c.kv_bytes) AS overhead_gib_low,
    gib(o.required_high - w.weights_total_bytes - c.kv_bytes) AS overhead_gib_high,
    gib(o.required_low) AS total_gib_low,
    gib(o.required_high) AS total_gib_high,
    gb(o.required_high) AS total_gb_high,
    m.max_context_tokens IS NOT NULL AND c.context_tokens > m.max_context_tokens AS is_beyond_configured_context
FROM footprint AS w
INNER JOIN precision AS p ON w.precision_id = p.precision_id
INNER JOIN model AS m ON w.model_id = m.model_id
CROSS JOIN cache AS c
LEFT JOIN one_gpu AS o ON w.precision_id = o.precision_id AND c.context_tokens = o.context_tokens
WHERE w.model_id = model_key(model)
ORDER BY w.weights_total_bytes DESC, w.precision_id ASC, c.context_tokens ASC;
COMMENT ON MACRO TABLE memory_by_context IS -- noqa: PRS
'memory_by_context(model): one row per precision and context: weights, one user''s KV cache (16 and 8 bit) and overhead apart, on one GPU; low and high are the least and the most demanding GPU; an overhead below zero: parts stay in the host''s memory (llama.cpp''s token embedding) [GiB, GB]; source: footprint, kv_cache, fit';
