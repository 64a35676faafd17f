-- The key of provider_alias names one row.
SELECT
    alias,
    count(*) AS copies
FROM provider_alias
GROUP BY alias
HAVING count(*) > 1;
