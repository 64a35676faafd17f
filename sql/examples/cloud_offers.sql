-- Who rents what holds this model, at which price, how billed and how old?
SELECT
    c.provider_id,
    c.gpu_count,
    c.gpu_id,
    c.precision_id,
    c.commitment,
    c.usd_per_hour,
    c.usd_per_month,
    c.scale_to_zero_usd_per_month,
    c.billing_granularity,
    c.age_days
FROM cloud_offers('Qwen/Qwen2.5-72B-Instruct', context := 8192, users := 2, active_hours_per_day := 8) AS c
ORDER BY c.usd_per_hour ASC, c.provider_id ASC
LIMIT 10;
