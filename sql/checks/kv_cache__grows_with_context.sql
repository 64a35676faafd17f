-- A longer context never needs less.
WITH ordered AS (
    SELECT
        k.model_id,
        k.kv_precision,
        k.context_tokens,
        k.minimum_bytes,
        lag(k.minimum_bytes) OVER (PARTITION BY k.model_id, k.kv_precision ORDER BY k.context_tokens) AS shorter_bytes
    FROM kv_cache AS k
)

SELECT *
FROM ordered
WHERE minimum_bytes < shorter_bytes OR minimum_bytes < 0;
