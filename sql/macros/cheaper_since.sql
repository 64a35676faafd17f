CREATE MACRO cheaper_since(since) AS TABLE
WITH believed AS (
    SELECT h.*
    FROM offer_history AS h
    WHERE
        coalesce(h.price_scope, 'instance') <> 'gpu_only'
        AND coalesce(h.product_kind, 'vm') IN ('vm', 'bare_metal')
        AND NOT is_doubtful(h.quality_flags)
),

before AS (
    SELECT
        h.gpu_id,
        h.gpu_count,
        h.commitment,
        min(h.usd_per_hour) AS old_usd_per_hour,
        arg_min(h.provider_id, h.usd_per_hour) AS old_provider_id
    FROM believed AS h
    WHERE
        h.valid_from < cast(since AS TIMESTAMP)
        AND (h.valid_to IS NULL OR h.valid_to >= cast(since AS TIMESTAMP))
        AND h.last_seen_at >= cast(since AS TIMESTAMP) - to_days(90)
    GROUP BY h.gpu_id, h.gpu_count, h.commitment
),

since_then AS (
    SELECT
        h.*,
        row_number() OVER (PARTITION BY h.gpu_id, h.gpu_count, h.commitment ORDER BY h.usd_per_hour, h.offer_id) AS place
    FROM believed AS h
    WHERE h.valid_to IS NULL AND h.valid_from >= cast(since AS TIMESTAMP)
)

SELECT
    n.gpu_id,
    n.gpu_count,
    n.commitment,
    n.provider_id,
    n.instance_type,
    n.region,
    round(n.usd_per_hour, 4) AS usd_per_hour,
    o.old_provider_id,
    round(o.old_usd_per_hour, 4) AS old_usd_per_hour,
    round(n.usd_per_hour / o.old_usd_per_hour - 1, 4) AS change_share,
    n.valid_from AS since_at,
    n.source_id
FROM since_then AS n
INNER JOIN before AS o ON n.gpu_id = o.gpu_id AND n.gpu_count = o.gpu_count AND n.commitment = o.commitment
WHERE n.place = 1 AND n.usd_per_hour < o.old_usd_per_hour
ORDER BY change_share ASC, n.gpu_id ASC, n.gpu_count ASC, n.commitment ASC;
COMMENT ON MACRO TABLE cheaper_since IS -- noqa: PRS
'cheaper_since(since): one row per GPU, count and commitment that is offered cheaper than the cheapest offer of that moment (UTC, seen in the 90 days before it), most first; change_share is new / old - 1 [USD/h]; source: offer_history';
