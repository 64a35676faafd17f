CREATE MACRO offers_on(gpu, moment) AS TABLE
SELECT
    h.provider_id,
    h.instance_type,
    h.gpu_id,
    h.gpu_count,
    h.region,
    h.commitment,
    h.commit_term,
    h.tier,
    h.price_scope,
    round(h.usd_per_hour, 4) AS usd_per_hour,
    round(h.usd_per_gpu_hour, 4) AS usd_per_gpu_hour,
    h.valid_from,
    h.valid_to,
    greatest(0, date_diff('day', h.last_seen_at, cast(moment AS TIMESTAMP))) AS age_days,
    h.quality_flags,
    h.source_id
FROM offer_history AS h
WHERE
    h.gpu_id = gpu_key(gpu)
    AND h.valid_from <= cast(moment AS TIMESTAMP)
    AND (h.valid_to IS NULL OR h.valid_to > cast(moment AS TIMESTAMP))
ORDER BY usd_per_gpu_hour ASC, h.offer_id ASC;
COMMENT ON MACRO TABLE offers_on IS -- noqa: PRS
'offers_on(gpu, moment): one row per offer of that GPU whose price stood at that moment (UTC), with how long before it had last been seen, cheapest GPU first [USD/h, days]; source: offer_history';
