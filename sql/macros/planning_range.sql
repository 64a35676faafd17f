CREATE MACRO planning_range(model, context_from := 8192, context_to := 32768, users := 4) AS TABLE
WITH needed AS (
    SELECT
        f.precision_id,
        f.context_tokens,
        min(f.required_bytes) AS least_bytes,
        max(f.required_bytes) AS most_bytes
    FROM fit AS f
    WHERE
        f.model_id = model_key(model)
        AND f.gpu_count = 1
        AND f.context_tokens IN (grid_context(model, context_from), grid_context(model, context_to))
    GROUP BY f.precision_id, f.context_tokens
),

cache AS (
    SELECT k.minimum_bytes
    FROM kv_cache AS k
    WHERE
        k.model_id = model_key(model)
        AND k.context_tokens = grid_context(model, context_to)
        AND k.kv_precision = 'bf16'
),

ranged AS (
    SELECT
        n.precision_id,
        min(n.least_bytes) AS low_bytes,
        max(n.most_bytes) + (users - 1) * max(c.minimum_bytes) AS high_bytes
    FROM needed AS n
    CROSS JOIN cache AS c
    GROUP BY n.precision_id
)

SELECT
    p.precision_class,
    p.precision_id,
    p.engine_id,
    grid_context(model, context_from) AS context_tokens_low,
    grid_context(model, context_to) AS context_tokens_high,
    users AS users_high,
    gb(p.weights_total_bytes) AS weights_gb,
    gb(r.low_bytes) AS total_gb_low,
    gb(r.high_bytes) AS total_gb_high,
    gib(r.low_bytes) AS total_gib_low,
    gib(r.high_bytes) AS total_gib_high,
    round(r.low_bytes / p.weights_total_bytes - 1, 3) AS overhead_share_low,
    round(r.high_bytes / p.weights_total_bytes - 1, 3) AS overhead_share_high
FROM model_precision(model) AS p
INNER JOIN ranged AS r ON p.precision_id = r.precision_id
ORDER BY p.weights_total_bytes DESC, p.precision_id ASC;
COMMENT ON MACRO TABLE planning_range IS -- noqa: PRS
'planning_range(model, context_from, context_to, users): one row per precision: from one user of the shorter context on the least demanding GPU to so many users of the longer one on the most demanding, and what comes on top of the weights [GB, GiB, share, tokens, count]; source: fit, kv_cache, footprint';
