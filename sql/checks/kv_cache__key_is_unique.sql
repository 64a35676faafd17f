-- The key of kv_cache names one row.
SELECT
    model_id,
    context_tokens,
    kv_precision,
    count(*) AS copies
FROM kv_cache
GROUP BY model_id, context_tokens, kv_precision
HAVING count(*) > 1;
