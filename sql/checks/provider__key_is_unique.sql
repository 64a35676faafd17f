-- The key of provider names one row.
SELECT
    provider_id,
    count(*) AS copies
FROM provider
GROUP BY provider_id
HAVING count(*) > 1;
