CREATE MACRO cloud_offers(
    model, context := 8192, users := 1, hours_per_month := 730, active_hours_per_day := 8, max_age_days := 90
) AS TABLE
WITH
held AS (
    SELECT
        h.gpu_id,
        h.gpu_count,
        h.precision_class,
        h.precision_id,
        h.engine_id,
        h.context_tokens,
        h.users
    FROM held_by(model, context := context, users := users) AS h
),

priced AS (
    SELECT
        h.*,
        o.provider_id,
        o.instance_type,
        o.commitment,
        o.tier,
        o.region,
        o.country,
        o.is_eu,
        o.billing_granularity,
        o.is_gpu_assumed,
        o.is_stale,
        o.source_id,
        o.url,
        o.observed_at,
        o.offer_id,
        b.built_at,
        CASE
            WHEN o.gpu_count = h.gpu_count THEN o.usd_per_hour
            WHEN
                o.price_scope = 'per_gpu'
                AND h.gpu_count
                BETWEEN coalesce(o.min_gpu_count, o.gpu_count) AND coalesce(o.max_gpu_count, o.gpu_count)
                THEN o.usd_per_gpu_hour * h.gpu_count
        END AS price
    FROM held AS h
    INNER JOIN offer AS o ON h.gpu_id = o.gpu_id
    CROSS JOIN build AS b
    WHERE
        o.price_scope <> 'gpu_only'
        AND coalesce(o.product_kind, 'vm') IN ('vm', 'bare_metal')
        AND o.commitment IN ('on_demand', 'spot')
        AND NOT is_doubtful(o.quality_flags)
        AND o.observed_at BETWEEN b.built_at - to_days(max_age_days) AND b.built_at
)

SELECT
    p.provider_id,
    p.instance_type,
    p.gpu_count,
    p.gpu_id,
    p.commitment,
    p.tier,
    p.region,
    p.country,
    p.is_eu,
    round(p.price, 4) AS usd_per_hour,
    cast(hours_per_month AS DOUBLE) AS hours_per_month,
    round(p.price * hours_per_month, 2) AS usd_per_month,
    CASE
        WHEN v.has_scale_to_zero THEN round(p.price * active_hours_per_day * 730 / 24, 2)
    END AS scale_to_zero_usd_per_month,
    coalesce(p.billing_granularity, v.billing_granularity) AS billing_granularity,
    v.minimum_charge,
    v.egress_usd_per_gb,
    v.has_scale_to_zero,
    v.jurisdiction,
    v.eu_regions,
    p.precision_class,
    p.precision_id,
    p.engine_id,
    p.context_tokens,
    p.users,
    s.decode_tokens_per_s,
    p.is_gpu_assumed,
    p.observed_at,
    date_diff('day', p.observed_at, p.built_at) AS age_days,
    p.is_stale,
    p.source_id,
    p.url
FROM priced AS p
LEFT JOIN provider AS v ON p.provider_id = v.provider_id
LEFT JOIN speed AS s
    ON p.precision_id = s.precision_id
    AND p.engine_id = s.engine_id
    AND p.gpu_id = s.gpu_id
    AND p.gpu_count = s.gpu_count
    AND p.context_tokens = s.context_tokens
    AND s.model_id = model_key(model)
WHERE p.price IS NOT NULL
ORDER BY p.price ASC, p.offer_id ASC, p.gpu_count ASC;
COMMENT ON MACRO TABLE cloud_offers IS -- noqa: PRS
'cloud_offers(model, context, users, hours_per_month, active_hours_per_day, max_age_days): one row per offer of a GPU and count that holds the model for so many users, cheapest first: price of those hours, of the active hours of each day where the provider scales to zero, billing, egress and jurisdiction, and its age [USD/h, USD/month, USD/GB, days]; source: fit, offer, provider';
