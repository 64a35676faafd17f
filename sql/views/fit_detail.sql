CREATE VIEW fit_detail AS
SELECT
    f.model_id,
    f.precision_id,
    p.precision_class,
    f.engine_id,
    f.gpu_id,
    f.gpu_count,
    f.context_tokens,
    f.verdict,
    f.limited_by,
    f.users,
    f.users_kv8,
    a.fit_context_tokens,
    m.max_context_tokens IS NOT NULL AND f.context_tokens > m.max_context_tokens AS is_beyond_configured_context,
    gib(f.required_bytes) AS required_gib,
    gib(f.taken_bytes) AS taken_gib,
    gib(f.headroom_bytes) AS headroom_gib,
    gib(a.budget_bytes) AS budget_gib,
    gib(a.weights_bytes) AS weights_gib,
    gib(a.activation_bytes) AS activation_gib,
    gib(a.non_torch_bytes) AS non_torch_gib,
    gib(a.cuda_graph_bytes) AS cuda_graph_gib,
    gib(a.compute_buffer_bytes) AS compute_buffer_gib,
    gib(a.kv_available_bytes) AS kv_available_gib,
    gib(a.kv_available_bytes_low) AS kv_available_gib_low,
    gib(a.kv_available_bytes_high) AS kv_available_gib_high,
    gib(k.minimum_bytes) AS kv_minimum_gib,
    a.support
FROM fit AS f
INNER JOIN model AS m ON f.model_id = m.model_id
INNER JOIN precision AS p ON f.precision_id = p.precision_id
LEFT JOIN capacity AS a
    ON f.model_id = a.model_id
    AND f.precision_id = a.precision_id
    AND f.engine_id = a.engine_id
    AND f.gpu_id = a.gpu_id
    AND f.gpu_count = a.gpu_count
LEFT JOIN kv_cache AS k
    ON f.model_id = k.model_id AND f.context_tokens = k.context_tokens AND k.kv_precision = 'bf16';
COMMENT ON VIEW fit_detail IS
'One row per row of fit, with the parts of the memory of one GPU (the fullest) beside the verdict; filter it by model_id and gpu_id; source: fit, capacity, kv_cache, model';
COMMENT ON COLUMN fit_detail.model_id IS 'Model; source: model';
COMMENT ON COLUMN fit_detail.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN fit_detail.precision_class IS 'Class of the precision; source: precision';
COMMENT ON COLUMN fit_detail.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN fit_detail.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN fit_detail.gpu_count IS 'GPUs [count]; source: fit';
COMMENT ON COLUMN fit_detail.context_tokens IS 'Context of each user [tokens]; source: fit';
COMMENT ON COLUMN fit_detail.verdict IS 'fits, tight, no or unknown; source: fit';
COMMENT ON COLUMN fit_detail.limited_by IS 'What stands in the way; null: nothing; source: fit';
COMMENT ON COLUMN fit_detail.users IS 'Sequences of that context at once, 16-bit KV [count]; source: fit';
COMMENT ON COLUMN fit_detail.users_kv8 IS 'Sequences of that context at once, 8-bit KV [count]; source: fit';
COMMENT ON COLUMN fit_detail.fit_context_tokens IS 'Longest context of one user [tokens]; source: capacity';
COMMENT ON COLUMN fit_detail.is_beyond_configured_context IS 'Whether the context needs the model''s extension (YaRN and the like); source: model';
COMMENT ON COLUMN fit_detail.required_gib IS 'Needed for one user, all GPUs [GiB]; source: fit';
COMMENT ON COLUMN fit_detail.taken_gib IS 'What the engine would take, all GPUs [GiB]; source: fit';
COMMENT ON COLUMN fit_detail.headroom_gib IS 'Free for KV beside one user, all GPUs [GiB]; source: fit';
COMMENT ON COLUMN fit_detail.budget_gib IS 'What the engine may use of one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.weights_gib IS 'Weights on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.activation_gib IS 'Peak of activations on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.non_torch_gib IS 'Runtime and libraries on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.cuda_graph_gib IS 'Captured graphs on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.compute_buffer_gib IS 'llama.cpp''s compute buffer on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.kv_available_gib IS 'Left for KV on one GPU [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.kv_available_gib_low IS 'Low end [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.kv_available_gib_high IS 'High end [GiB]; source: capacity';
COMMENT ON COLUMN fit_detail.kv_minimum_gib IS 'What one sequence needs by the architecture, 16 bit [GiB]; source: kv_cache';
COMMENT ON COLUMN fit_detail.support IS 'How the engine runs this precision on this GPU; source: capacity';
