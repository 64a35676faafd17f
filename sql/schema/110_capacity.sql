-- Mart: what an engine has left for KV on one GPU.

CREATE TABLE capacity (
    model_id model_id NOT NULL,
    precision_id precision_id NOT NULL,
    engine_id engine_id NOT NULL,
    gpu_id gpu_id NOT NULL,
    gpu_count SMALLINT NOT NULL,
    weights_bytes BIGINT,
    activation_bytes BIGINT,
    non_torch_bytes BIGINT,
    cuda_graph_bytes BIGINT,
    budget_bytes BIGINT,
    kv_available_bytes BIGINT,
    kv_available_bytes_low BIGINT,
    kv_available_bytes_high BIGINT,
    support support,
    limited_by limited_by,
    compute_buffer_bytes BIGINT,
    fit_context_tokens BIGINT
);
COMMENT ON TABLE capacity IS 'One row per model, precision, engine, GPU and count: the memory of one GPU (the fullest), whatever the context; source: fitmart.estimator.engines';
COMMENT ON COLUMN capacity.model_id IS 'Model; source: model';
COMMENT ON COLUMN capacity.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN capacity.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN capacity.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN capacity.gpu_count IS 'GPUs [count]; source: grid';
COMMENT ON COLUMN capacity.weights_bytes IS 'Weights on that GPU [bytes]; source: footprint, cut by tensor parallelism';
COMMENT ON COLUMN capacity.activation_bytes IS 'Peak of activations while profiling [bytes]; source: engine''s rule for its newest known version';
COMMENT ON COLUMN capacity.non_torch_bytes IS 'Runtime, NCCL and libraries [bytes]; source: engine''s rule';
COMMENT ON COLUMN capacity.cuda_graph_bytes IS 'Captured graphs [bytes]; source: engine''s rule';
COMMENT ON COLUMN capacity.budget_bytes IS 'What the engine may use [bytes]; source: utilization × device memory, or the addressable share';
COMMENT ON COLUMN capacity.kv_available_bytes IS 'Left for KV: budget less the four parts; may be negative [bytes]; source: difference';
COMMENT ON COLUMN capacity.kv_available_bytes_low IS 'Low end [bytes]; source: 80 % band';
COMMENT ON COLUMN capacity.kv_available_bytes_high IS 'High end [bytes]; source: 80 % band';
COMMENT ON COLUMN capacity.support IS 'How the engine runs this precision on this GPU; source: engine_support';
COMMENT ON COLUMN capacity.limited_by IS 'What stands in the way at any context; null: nothing; source: fitmart.estimator.fit';
COMMENT ON COLUMN capacity.compute_buffer_bytes IS 'llama.cpp''s compute buffer [bytes]; source: engine''s rule';
COMMENT ON COLUMN capacity.fit_context_tokens IS 'Longest context of one user [tokens]; source: kv_available_bytes and model_cache';
