-- low ≤ figure ≤ high.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    kv_available_bytes
FROM capacity
WHERE NOT (kv_available_bytes BETWEEN kv_available_bytes_low AND kv_available_bytes_high);
