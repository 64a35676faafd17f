-- What fits has a footprint and a cache at that context.
WITH asked AS (
    SELECT DISTINCT
        f.model_id,
        f.precision_id,
        f.context_tokens
    FROM fit AS f
    WHERE f.verdict IN ('fits', 'tight')
)

SELECT
    a.model_id,
    a.precision_id,
    a.context_tokens
FROM asked AS a
LEFT JOIN footprint AS w ON a.model_id = w.model_id AND a.precision_id = w.precision_id
LEFT JOIN kv_cache AS k
    ON a.model_id = k.model_id AND a.context_tokens = k.context_tokens AND k.kv_precision = 'bf16'
WHERE w.weights_total_bytes IS NULL OR k.minimum_bytes IS NULL;
