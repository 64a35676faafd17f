CREATE MACRO quantization_matrix(model, gpu, context := 8192) AS TABLE
WITH smallest AS (
    SELECT
        f.precision_id,
        arg_min(g.name, (g.memory_bytes, g.gpu_id)) AS gpu_name
    FROM fit AS f
    INNER JOIN gpu AS g ON f.gpu_id = g.gpu_id
    WHERE
        f.model_id = model_key(model)
        AND f.context_tokens = grid_context(model, context)
        AND f.gpu_count = 1
        AND f.verdict = 'fits'
        AND g.is_released
    GROUP BY f.precision_id
)

SELECT
    f.precision_id,
    p.precision_class,
    f.engine_id,
    f.context_tokens,
    gib(w.weights_total_bytes) AS weights_gib,
    gib(k.minimum_bytes) AS kv_gib,
    gib(f.required_bytes) AS required_gib,
    gb(f.required_bytes) AS required_gb,
    gib(f.headroom_bytes) AS headroom_gib,
    f.verdict,
    f.limited_by,
    f.users,
    s.decode_tokens_per_s,
    s.decode_tokens_per_s_low,
    s.decode_tokens_per_s_high,
    s.prefill_tokens_per_s,
    s.ttft_ms,
    a.support,
    m.gpu_name AS smallest_gpu,
    w.basis
FROM fit AS f
INNER JOIN precision AS p ON f.precision_id = p.precision_id
INNER JOIN footprint AS w ON f.model_id = w.model_id AND f.precision_id = w.precision_id
INNER JOIN kv_cache AS k
    ON f.model_id = k.model_id AND f.context_tokens = k.context_tokens AND k.kv_precision = 'bf16'
LEFT JOIN capacity AS a
    ON f.model_id = a.model_id
    AND f.precision_id = a.precision_id
    AND f.engine_id = a.engine_id
    AND f.gpu_id = a.gpu_id
    AND f.gpu_count = a.gpu_count
    AND a.model_id = model_key(model)
LEFT JOIN speed AS s
    ON f.model_id = s.model_id
    AND f.precision_id = s.precision_id
    AND f.engine_id = s.engine_id
    AND f.gpu_id = s.gpu_id
    AND f.gpu_count = s.gpu_count
    AND f.context_tokens = s.context_tokens
    AND s.model_id = model_key(model)
LEFT JOIN smallest AS m ON f.precision_id = m.precision_id
WHERE
    f.model_id = model_key(model)
    AND f.gpu_id = gpu_key(gpu)
    AND f.gpu_count = 1
    AND f.context_tokens = grid_context(model, context)
ORDER BY w.weights_total_bytes DESC, f.precision_id ASC;
COMMENT ON MACRO TABLE quantization_matrix IS -- noqa: PRS
'quantization_matrix(model, gpu, context): one row per precision on one such GPU: weights, KV and total, verdict, speed with band, the smallest GPU that holds it, and how the weights are known [GiB, GB, tokens/s, ms]; source: fit, footprint, kv_cache, capacity, speed';
