CREATE MACRO offer_changes(since) AS TABLE
WITH spans AS (
    SELECT
        h.*,
        lag(h.usd_per_hour) OVER one_offer AS old_usd_per_hour,
        lag(h.valid_to) OVER one_offer AS ended_at,
        lead(h.valid_from) OVER one_offer AS next_from
    FROM offer_history AS h
    WINDOW one_offer AS (PARTITION BY h.offer_id ORDER BY h.valid_from)
),

change AS (
    SELECT
        s.*,
        s.valid_from AS changed_at,
        s.usd_per_hour AS new_usd_per_hour,
        CASE
            WHEN s.old_usd_per_hour IS NULL THEN 'new'
            WHEN s.ended_at < s.valid_from THEN 'back'
            WHEN s.usd_per_hour < s.old_usd_per_hour THEN 'cheaper'
            WHEN s.usd_per_hour > s.old_usd_per_hour THEN 'dearer'
            ELSE 'source'
        END AS kind
    FROM spans AS s
    UNION ALL
    SELECT
        s.* REPLACE (s.usd_per_hour AS old_usd_per_hour),
        s.valid_to AS changed_at,
        NULL AS new_usd_per_hour,
        'gone' AS kind
    FROM spans AS s
    WHERE s.valid_to IS NOT NULL AND (s.next_from IS NULL OR s.next_from > s.valid_to)
)

SELECT
    c.changed_at,
    c.kind,
    c.provider_id,
    c.instance_type,
    c.gpu_id,
    c.gpu_count,
    c.region,
    c.commitment,
    c.commit_term,
    c.tier,
    round(c.old_usd_per_hour, 4) AS old_usd_per_hour,
    round(c.new_usd_per_hour, 4) AS new_usd_per_hour,
    round(c.new_usd_per_hour / c.old_usd_per_hour - 1, 4) AS change_share,
    c.quality_flags,
    c.source_id,
    c.offer_id
FROM change AS c
WHERE c.changed_at >= cast(since AS TIMESTAMP)
ORDER BY c.changed_at DESC, c.offer_id ASC;
COMMENT ON MACRO TABLE offer_changes IS -- noqa: PRS
'offer_changes(since): one row per offer and change of its price since then (UTC), newest first: new, cheaper, dearer, gone, back, or source where only the dollars of a currency moved; change_share is new / old - 1 [USD/h]; source: offer_history';
