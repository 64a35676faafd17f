-- The key of footprint names one row.
SELECT
    model_id,
    precision_id,
    count(*) AS copies
FROM footprint
GROUP BY model_id, precision_id
HAVING count(*) > 1;
