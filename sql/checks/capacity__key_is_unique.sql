-- The key of capacity names one row.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    count(*) AS copies
FROM capacity
GROUP BY model_id, precision_id, engine_id, gpu_id, gpu_count
HAVING count(*) > 1;
