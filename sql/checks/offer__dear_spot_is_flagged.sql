-- A spot price not below the on-demand price of the very same thing carries its flag.
SELECT
    s.offer_id,
    s.usd_per_hour,
    d.usd_per_hour AS on_demand_usd_per_hour
FROM offer AS s
INNER JOIN offer AS d
    ON
        s.provider_id = d.provider_id
        AND s.gpu_id = d.gpu_id
        AND s.gpu_count = d.gpu_count
        AND s.source_id = d.source_id
        AND s.instance_type IS NOT DISTINCT FROM d.instance_type
        AND s.region IS NOT DISTINCT FROM d.region
        AND s.tier IS NOT DISTINCT FROM d.tier
WHERE
    s.commitment = 'spot'
    AND d.commitment = 'on_demand'
    AND s.usd_per_hour >= d.usd_per_hour
    AND NOT coalesce(s.quality_flags, '') LIKE '%spot_not_below_on_demand%';
