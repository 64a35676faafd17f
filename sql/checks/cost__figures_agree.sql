-- A price comes with its offer, a month is 730 hours, a band holds its figure.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    context_tokens,
    usd_per_hour,
    usd_per_month
FROM cost
WHERE
    (usd_per_hour IS NULL) <> (on_demand_offer_id IS NULL)
    OR usd_per_hour <= 0
    OR abs(usd_per_month - usd_per_hour * 730) > 0.01
    OR NOT (usd_per_mtok BETWEEN usd_per_mtok_low AND usd_per_mtok_high);
