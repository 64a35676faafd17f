-- Which other models were made from the same one?
SELECT
    m.model_id AS asked_for,
    s.model_id,
    s.native_precision
FROM model AS m
LEFT JOIN siblings('Qwen/Qwen2.5-72B-Instruct') AS s ON TRUE
WHERE m.model_id = 'Qwen/Qwen2.5-72B-Instruct';
