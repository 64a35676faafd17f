CREATE MACRO users_per_gpu(model, context := 8192) AS TABLE
SELECT
    g.gpu_id,
    g.name AS gpu_name,
    f.gpu_count,
    gib(g.memory_bytes) AS memory_gib,
    p.precision_class,
    f.precision_id,
    f.engine_id,
    f.context_tokens,
    f.verdict,
    f.limited_by,
    f.users,
    f.users_kv8,
    row_number() OVER (
        PARTITION BY f.gpu_id, f.gpu_count, p.precision_class
        ORDER BY f.verdict ASC, f.users DESC, f.headroom_bytes DESC, f.precision_id ASC
    ) = 1 AS is_best_of_class,
    gib(f.headroom_bytes) AS headroom_gib,
    s.decode_tokens_per_s,
    s.throughput_tokens_per_s,
    c.usd_per_hour
FROM fit AS f
INNER JOIN gpu AS g ON f.gpu_id = g.gpu_id
INNER JOIN model_precision(model) AS p ON f.precision_id = p.precision_id
LEFT JOIN speed AS s
    ON f.model_id = s.model_id
    AND f.precision_id = s.precision_id
    AND f.engine_id = s.engine_id
    AND f.gpu_id = s.gpu_id
    AND f.gpu_count = s.gpu_count
    AND f.context_tokens = s.context_tokens
    AND s.model_id = model_key(model)
LEFT JOIN cost AS c
    ON f.model_id = c.model_id
    AND f.precision_id = c.precision_id
    AND f.engine_id = c.engine_id
    AND f.gpu_id = c.gpu_id
    AND f.gpu_count = c.gpu_count
    AND f.context_tokens = c.context_tokens
    AND c.model_id = model_key(model)
WHERE f.model_id = model_key(model) AND f.context_tokens = grid_context(model, context)
ORDER BY g.memory_bytes, g.gpu_id, f.gpu_count, p.precision_class, f.precision_id;
COMMENT ON MACRO TABLE users_per_gpu IS -- noqa: PRS
'users_per_gpu(model, context): one row per GPU, count and precision: users at once at that context (16- and 8-bit KV), or the reason why not, with speed and rent; is_best_of_class marks the precision and engine of a class that holds most [count, GiB, tokens/s, USD/h]; source: fit, speed, cost';
