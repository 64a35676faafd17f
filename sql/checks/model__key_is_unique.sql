-- The key of model names one row.
SELECT
    model_id,
    count(*) AS copies
FROM model
GROUP BY model_id
HAVING count(*) > 1;
