-- The key of engine names one row.
SELECT
    engine_id,
    count(*) AS copies
FROM engine
GROUP BY engine_id
HAVING count(*) > 1;
