CREATE MACRO anatomy(model) AS TABLE
SELECT
    t.component,
    t.tensor,
    t.layer_count,
    t.copies,
    t.rows,
    t.columns,
    t.params,
    round(t.params / m.params_total, 4) AS params_share,
    gib(t.params * 2) AS bf16_gib,
    t.stored_format,
    t.tp_axis,
    t.is_in_memory
FROM model_tensor AS t
INNER JOIN model AS m ON t.model_id = m.model_id
WHERE t.model_id = model_key(model)
ORDER BY t.params DESC, t.tensor ASC;
COMMENT ON MACRO TABLE anatomy IS -- noqa: PRS
'anatomy(model): one row per weight pattern, the largest first: shape, layers, parameters and their share, size at 16 bit and how it is stored [count, share, GiB]; source: model_tensor';
