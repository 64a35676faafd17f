-- The key of speed names one row.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    context_tokens,
    count(*) AS copies
FROM speed
GROUP BY model_id, precision_id, engine_id, gpu_id, gpu_count, context_tokens
HAVING count(*) > 1;
