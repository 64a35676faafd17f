CREATE MACRO price_history(gpu, every_days := 7, max_age_days := 90) AS TABLE
WITH believed AS (
    SELECT h.*
    FROM offer_history AS h
    WHERE
        h.gpu_id = gpu_key(gpu)
        AND coalesce(h.price_scope, 'instance') <> 'gpu_only'
        AND coalesce(h.product_kind, 'vm') IN ('vm', 'bare_metal')
        AND NOT is_doubtful(h.quality_flags)
),

first_day AS (
    SELECT
        b.built_at,
        unnest(generate_series(0, date_diff('day', (SELECT min(x.valid_from) FROM believed AS x), b.built_at), every_days)) AS days_before
    FROM build AS b
),

day AS (
    SELECT cast(f.built_at AS DATE) - cast(f.days_before AS INTEGER) AS seen_on
    FROM first_day AS f
),

stood AS (
    SELECT DISTINCT
        d.seen_on,
        h.commitment,
        h.provider_id,
        h.usd_per_gpu_hour
    FROM day AS d
    INNER JOIN believed AS h
        ON
            h.valid_from < d.seen_on + 1
            AND (h.valid_to IS NULL OR h.valid_to >= d.seen_on + 1)
            AND h.last_seen_at >= d.seen_on - to_days(cast(max_age_days AS INTEGER))
)

SELECT
    s.seen_on,
    s.commitment,
    round(min(s.usd_per_gpu_hour), 4) AS min_usd_per_gpu_hour,
    round(median(s.usd_per_gpu_hour), 4) AS median_usd_per_gpu_hour,
    round(max(s.usd_per_gpu_hour), 4) AS max_usd_per_gpu_hour,
    arg_min(s.provider_id, s.usd_per_gpu_hour) AS cheapest_provider_id,
    count(DISTINCT s.provider_id) AS providers
FROM stood AS s
GROUP BY s.seen_on, s.commitment
ORDER BY s.seen_on ASC, s.commitment ASC;
COMMENT ON MACRO TABLE price_history IS -- noqa: PRS
'price_history(gpu, every_days, max_age_days): one row per day (every so many days back from the build) and commitment: what one of that GPU cost, over the distinct prices of each provider that stood at the end of that day and had been seen within max_age_days, no doubtful price [USD/h]; source: offer_history';
