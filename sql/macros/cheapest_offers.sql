CREATE MACRO cheapest_offers(gpu, gpus := 1, max_age_days := 90) AS TABLE
WITH priced AS (
    SELECT
        o.*,
        CASE
            WHEN o.gpu_count = gpus THEN o.usd_per_hour
            WHEN
                o.price_scope = 'per_gpu'
                AND gpus BETWEEN coalesce(o.min_gpu_count, o.gpu_count) AND coalesce(o.max_gpu_count, o.gpu_count)
                THEN o.usd_per_gpu_hour * gpus
        END AS price,
        b.built_at
    FROM offer AS o
    CROSS JOIN build AS b
    WHERE
        o.gpu_id = gpu_key(gpu)
        AND o.price_scope <> 'gpu_only'
        AND coalesce(o.product_kind, 'vm') IN ('vm', 'bare_metal')
        AND NOT is_doubtful(o.quality_flags)
        AND o.observed_at >= b.built_at - to_days(max_age_days)
)

SELECT
    p.provider_id,
    p.instance_type,
    p.gpu_id,
    gpus AS gpu_count,
    p.commitment,
    p.commit_term,
    p.tier,
    p.region,
    p.country,
    p.is_eu,
    round(p.price, 4) AS usd_per_hour,
    round(p.price * 730, 2) AS usd_per_month,
    CASE WHEN p.gpu_count = gpus THEN 'offered' ELSE 'scaled' END AS price_basis,
    coalesce(p.billing_granularity, v.billing_granularity) AS billing_granularity,
    v.egress_usd_per_gb,
    v.has_scale_to_zero,
    v.jurisdiction,
    p.product_kind,
    p.is_gpu_assumed,
    p.quality_flags,
    p.observed_at,
    date_diff('day', p.observed_at, p.built_at) AS age_days,
    p.is_stale,
    p.source_id,
    p.url
FROM priced AS p
LEFT JOIN provider AS v ON p.provider_id = v.provider_id
WHERE p.price IS NOT NULL
ORDER BY usd_per_hour ASC, p.offer_id ASC;
COMMENT ON MACRO TABLE cheapest_offers IS -- noqa: PRS
'cheapest_offers(gpu, gpus, max_age_days): one row per machine on offer that serves so many of that GPU, cheapest first, no doubtful price, none older than max_age_days at the build; a month is 730 hours [USD/h, USD/month, days]; source: offer, provider';
