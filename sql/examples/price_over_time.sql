-- What has an H100 cost over time, at the cheapest and in the middle of the market?
SELECT
    p.seen_on,
    p.commitment,
    p.min_usd_per_gpu_hour,
    p.median_usd_per_gpu_hour,
    p.providers
FROM price_history('nvidia-h100-sxm', every_days := 30) AS p
ORDER BY p.seen_on ASC, p.commitment ASC;
