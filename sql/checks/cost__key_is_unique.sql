-- The key of cost names one row.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    context_tokens,
    count(*) AS copies
FROM cost
GROUP BY model_id, precision_id, engine_id, gpu_id, gpu_count, context_tokens
HAVING count(*) > 1;
