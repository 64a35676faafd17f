-- Active parameters are among all of them; a model has layers.
SELECT
    model_id,
    params_total,
    params_active,
    layers
FROM model
WHERE NOT (params_total > 0 AND params_active BETWEEN 1 AND params_total AND layers >= 1);
