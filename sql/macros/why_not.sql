CREATE MACRO why_not(model, gpu, context := 8192) AS TABLE
WITH holds AS (
    SELECT
        f.precision_id,
        min(f.gpu_count) AS gpu_count
    FROM fit AS f
    WHERE
        f.model_id = model_key(model)
        AND f.gpu_id = gpu_key(gpu)
        AND f.context_tokens = grid_context(model, context)
        AND f.verdict = 'fits'
    GROUP BY f.precision_id
)

SELECT
    f.precision_id,
    f.engine_id,
    f.gpu_count,
    f.context_tokens,
    f.verdict,
    f.limited_by,
    CASE f.limited_by
        WHEN 'weights' THEN 'the weights alone do not fit beside what the engine needs'
        WHEN 'kv_cache' THEN 'the weights fit, the KV cache of one user of this context does not'
        WHEN 'context' THEN 'the model is not made for this context'
        WHEN 'tp_divisibility' THEN 'the model''s heads cannot be divided among so many GPUs'
        WHEN 'unsupported' THEN 'the engine does not run this precision on this GPU'
        WHEN 'unknown' THEN 'not known whether the engine runs it, or how much memory there is'
        ELSE if(f.verdict = 'tight', 'it fits by the estimate, not by the careful end of its band', 'it fits')
    END AS reason,
    gib(f.required_bytes) AS required_gib,
    gib(f.headroom_bytes) AS headroom_gib,
    a.fit_context_tokens,
    h.gpu_count AS fits_at_gpu_count
FROM fit AS f
LEFT JOIN capacity AS a
    ON f.model_id = a.model_id
    AND f.precision_id = a.precision_id
    AND f.engine_id = a.engine_id
    AND f.gpu_id = a.gpu_id
    AND f.gpu_count = a.gpu_count
    AND a.model_id = model_key(model)
LEFT JOIN holds AS h ON f.precision_id = h.precision_id
WHERE
    f.model_id = model_key(model)
    AND f.gpu_id = gpu_key(gpu)
    AND f.context_tokens = grid_context(model, context)
UNION ALL
SELECT
    NULL AS precision_id,
    NULL AS engine_id,
    NULL AS gpu_count,
    context AS context_tokens,
    CASE WHEN model_key(model) IS NULL OR gpu_key(gpu) IS NULL THEN 'unknown' ELSE 'no' END AS verdict,
    CASE WHEN model_key(model) IS NULL OR gpu_key(gpu) IS NULL THEN 'unknown' ELSE 'context' END AS limited_by,
    CASE
        WHEN model_key(model) IS NULL THEN 'no such model in the catalog'
        WHEN gpu_key(gpu) IS NULL THEN 'no such GPU in the catalog'
        ELSE 'the model is not made for this context'
    END AS reason,
    NULL AS required_gib,
    NULL AS headroom_gib,
    NULL AS fit_context_tokens,
    NULL AS fits_at_gpu_count
WHERE model_key(model) IS NULL OR gpu_key(gpu) IS NULL OR grid_context(model, context) IS NULL
ORDER BY precision_id, gpu_count;
COMMENT ON MACRO TABLE why_not IS -- noqa: PRS
'why_not(model, gpu, context): one row per precision and count on that GPU, what stands in the way in words, what is missing, the context that would fit and the count that would hold it; one row with the reason where model, GPU or context is not in the catalog [GiB, tokens, count]; source: fit, capacity';
