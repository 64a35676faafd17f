-- Mart: does it fit. What does not fit is a row, with the reason.

CREATE TABLE fit (
    model_id model_id NOT NULL,
    precision_id precision_id NOT NULL,
    engine_id engine_id NOT NULL,
    gpu_id gpu_id NOT NULL,
    gpu_count SMALLINT NOT NULL,
    context_tokens INTEGER NOT NULL,
    required_bytes BIGINT,
    taken_bytes BIGINT,
    headroom_bytes BIGINT,
    users INTEGER,
    users_kv8 INTEGER,
    verdict verdict NOT NULL,
    limited_by limited_by
);
COMMENT ON TABLE fit IS 'One row per model, precision, engine, GPU, count and context of the grid; source: fitmart.estimator.fit';
COMMENT ON COLUMN fit.model_id IS 'Model; source: model';
COMMENT ON COLUMN fit.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN fit.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN fit.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN fit.gpu_count IS 'GPUs [count]; source: grid';
COMMENT ON COLUMN fit.context_tokens IS 'Context of each user [tokens]; source: grid';
COMMENT ON COLUMN fit.required_bytes IS 'Needed for one user, all GPUs [bytes]; source: fitmart.estimator.engines';
COMMENT ON COLUMN fit.taken_bytes IS 'What the engine would take, all GPUs [bytes]; source: fitmart.estimator.engines';
COMMENT ON COLUMN fit.headroom_bytes IS 'Free for KV beside one user, all GPUs; negative: missing [bytes]; source: kv_available_bytes less one sequence';
COMMENT ON COLUMN fit.users IS 'Sequences of that context at once, 16-bit KV; null: the model keeps no cache [count]; source: fitmart.estimator.engines';
COMMENT ON COLUMN fit.users_kv8 IS 'Sequences of that context at once, 8-bit KV [count]; source: fitmart.estimator.engines';
COMMENT ON COLUMN fit.verdict IS 'fits, tight (the band straddles the budget), no or unknown; source: fitmart.estimator.fit';
COMMENT ON COLUMN fit.limited_by IS 'weights, kv_cache, context, tp_divisibility, unsupported or unknown; null: nothing; source: fitmart.estimator.fit';
