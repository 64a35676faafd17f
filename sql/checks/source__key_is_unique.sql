-- The key of source names one row.
SELECT
    source_id,
    count(*) AS copies
FROM source
GROUP BY source_id
HAVING count(*) > 1;
