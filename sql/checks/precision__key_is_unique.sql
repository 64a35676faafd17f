-- The key of precision names one row.
SELECT
    precision_id,
    count(*) AS copies
FROM precision
GROUP BY precision_id
HAVING count(*) > 1;
