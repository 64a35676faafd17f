-- Where do two sources ask different prices for the same machine?
SELECT
    d.provider_id,
    d.instance_type,
    d.gpu_id,
    d.commitment,
    d.standing_source_id,
    d.standing_usd_per_hour,
    d.source_id,
    d.usd_per_hour,
    d.difference_share
FROM source_disagreement AS d
ORDER BY abs(d.difference_share) DESC, d.offer_id ASC
LIMIT 20;
