-- Every provider_id is a row of provider.
WITH named AS (
    SELECT DISTINCT
        'offer' AS table_name,
        o.provider_id
    FROM offer AS o
    UNION ALL
    SELECT DISTINCT
        'api_price' AS table_name,
        a.provider_id
    FROM api_price AS a
    UNION ALL
    SELECT DISTINCT
        'provider_alias' AS table_name,
        l.provider_id
    FROM provider_alias AS l
)

SELECT
    n.table_name,
    n.provider_id
FROM named AS n
LEFT JOIN provider AS p ON n.provider_id = p.provider_id
WHERE p.provider_id IS NULL;
