CREATE MACRO model_precision(model) AS TABLE
SELECT
    w.precision_id,
    coalesce(if(p.precision_class = 'native', n.precision_class, p.precision_class), 'native') AS precision_class,
    p.engine_id,
    coalesce(p.bits_per_weight, n.bits_per_weight, 8.0 * w.weights_total_bytes / nullif(m.params_total, 0)) AS bits_per_weight,
    w.weights_total_bytes,
    w.basis
FROM footprint AS w
INNER JOIN model AS m ON w.model_id = m.model_id
INNER JOIN precision AS p ON w.precision_id = p.precision_id
LEFT JOIN precision AS n ON cast(n.precision_id AS VARCHAR) = m.native_precision
WHERE w.model_id = model_key(model);
COMMENT ON MACRO TABLE model_precision IS -- noqa: PRS
'model_precision(model): one row per precision of the model in the catalog: its class (that of the repository for native), default engine, bits a weight and bytes of the weights [bits, bytes]; source: footprint, precision';
