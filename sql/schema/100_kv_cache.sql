-- Mart: the bytes of one sequence's cache.

CREATE TABLE kv_cache (
    model_id model_id NOT NULL,
    context_tokens INTEGER NOT NULL,
    kv_precision kv_precision NOT NULL,
    minimum_bytes BIGINT NOT NULL,
    vllm_bytes BIGINT,
    llamacpp_bytes BIGINT
);
COMMENT ON TABLE kv_cache IS 'One row per model, context and KV precision: the cache of one sequence; source: fitmart.estimator.kv_cache';
COMMENT ON COLUMN kv_cache.model_id IS 'Model; source: model';
COMMENT ON COLUMN kv_cache.context_tokens IS 'Context [tokens]; source: grid';
COMMENT ON COLUMN kv_cache.kv_precision IS 'bf16, fp8, q8_0 or q4_0; source: grid';
COMMENT ON COLUMN kv_cache.minimum_bytes IS 'What the architecture needs [bytes]; source: model_cache';
COMMENT ON COLUMN kv_cache.vllm_bytes IS 'What vLLM''s newest known version reserves for it, in whole blocks [bytes]; source: fitmart.estimator.engines';
COMMENT ON COLUMN kv_cache.llamacpp_bytes IS 'What llama.cpp''s newest known version reserves for it [bytes]; source: fitmart.estimator.engines';
