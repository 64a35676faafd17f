-- After how many months has rent paid for the cards, electricity counted?
SELECT
    r.gpu_count,
    r.gpu_id,
    r.precision_id,
    r.purchase_usd,
    r.purchased_on,
    r.usd_per_month,
    r.power_usd_per_month,
    r.payback_months
FROM rent_or_buy('Qwen/Qwen2.5-72B-Instruct', hours_per_month := 730, usd_per_kwh := 0.15) AS r
ORDER BY r.purchase_usd ASC, r.gpu_id ASC, r.precision_id ASC
LIMIT 10;
