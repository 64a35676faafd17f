CREATE MACRO siblings(model) AS TABLE
SELECT
    s.model_id,
    s.params_total,
    s.native_precision,
    s.quant_method,
    s.max_context_tokens,
    s.downloads
FROM model AS s
INNER JOIN model AS m ON m.model_id = model_key(model)
WHERE
    s.model_id <> m.model_id
    AND (
        s.base_model = cast(m.model_id AS VARCHAR)
        OR cast(s.model_id AS VARCHAR) = m.base_model
        OR s.base_model = m.base_model
        OR (
            s.model_type = m.model_type
            AND s.params_total = m.params_total
            AND split_part(cast(s.model_id AS VARCHAR), '/', 1) = split_part(cast(m.model_id AS VARCHAR), '/', 1)
        )
    )
ORDER BY s.downloads DESC NULLS LAST, s.model_id ASC;
COMMENT ON MACRO TABLE siblings IS -- noqa: PRS
'siblings(model): one row per other model made from it, from the same one, or of the same publisher and shape [count, tokens]; source: model';
