CREATE MACRO rent_or_buy(model, context := 8192, users := 1) AS TABLE
SELECT
    c.gpu_id,
    c.gpu_count,
    c.precision_id,
    c.engine_id,
    f.users,
    c.usd_per_hour,
    c.usd_per_month,
    c.purchase_usd,
    c.power_usd_per_month,
    c.payback_months,
    g.purchase_basis,
    g.purchased_on
FROM cost AS c
INNER JOIN fit AS f
    ON c.model_id = f.model_id
    AND c.precision_id = f.precision_id
    AND c.engine_id = f.engine_id
    AND c.gpu_id = f.gpu_id
    AND c.gpu_count = f.gpu_count
    AND c.context_tokens = f.context_tokens
    AND f.model_id = model_key(model)
INNER JOIN gpu AS g ON c.gpu_id = g.gpu_id
WHERE
    c.model_id = model_key(model)
    AND c.context_tokens = grid_context(model, context)
    AND f.users >= users
    AND c.purchase_usd IS NOT NULL
ORDER BY c.purchase_usd, c.gpu_id, c.precision_id;
COMMENT ON MACRO TABLE rent_or_buy IS -- noqa: PRS
'rent_or_buy(model, context, users): one row per configuration whose GPUs have a street price, cheapest to buy first, with rent, electricity and the months in which rent pays the purchase [USD, USD/h, USD/month, months]; source: cost, gpu';
