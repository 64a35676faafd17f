-- Where is an H100 rented cheapest, how is it billed, and how old is the price?
SELECT
    o.provider_id,
    o.instance_type,
    o.commitment,
    o.usd_per_hour,
    o.usd_per_month,
    o.billing_granularity,
    o.age_days
FROM cheapest_offers('nvidia-h100-sxm') AS o
ORDER BY o.usd_per_hour ASC, o.provider_id ASC
LIMIT 10;
