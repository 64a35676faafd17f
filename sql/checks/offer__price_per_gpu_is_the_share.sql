-- usd_per_gpu_hour × gpu_count is usd_per_hour, to the last decimals.
SELECT
    offer_id,
    usd_per_hour,
    usd_per_gpu_hour,
    gpu_count
FROM offer
WHERE abs(usd_per_gpu_hour * gpu_count - usd_per_hour) > 0.0001 * gpu_count;
