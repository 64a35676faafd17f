-- Mart: the bytes of the weights.

CREATE TABLE footprint (
    model_id model_id NOT NULL,
    precision_id precision_id NOT NULL,
    weights_total_bytes BIGINT,
    file_bytes BIGINT,
    file_bytes_low BIGINT,
    file_bytes_high BIGINT,
    basis VARCHAR,
    embedding_bytes BIGINT,
    attention_bytes BIGINT,
    mlp_bytes BIGINT,
    experts_bytes BIGINT,
    norm_bytes BIGINT,
    lm_head_bytes BIGINT,
    vision_bytes BIGINT,
    error VARCHAR
);
COMMENT ON TABLE footprint IS 'One row per model and precision of the grid; source: fitmart.estimator.footprint';
COMMENT ON COLUMN footprint.model_id IS 'Model; source: model';
COMMENT ON COLUMN footprint.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN footprint.weights_total_bytes IS 'The whole model in memory [bytes]; source: model_tensor × the precision''s formats';
COMMENT ON COLUMN footprint.file_bytes IS 'The whole model on disk [bytes]; source: model_tensor × the precision''s formats';
COMMENT ON COLUMN footprint.file_bytes_low IS 'Low end where no rule decides, else file_bytes [bytes]; source: 80 % band';
COMMENT ON COLUMN footprint.file_bytes_high IS 'High end where no rule decides, else file_bytes [bytes]; source: 80 % band';
COMMENT ON COLUMN footprint.basis IS 'stored, derived, typical or assumed; source: fitmart.estimator.footprint';
COMMENT ON COLUMN footprint.embedding_bytes IS 'Token embedding [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.attention_bytes IS 'Attention matrices [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.mlp_bytes IS 'Dense MLP matrices [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.experts_bytes IS 'Routed experts [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.norm_bytes IS 'Norms and routers [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.lm_head_bytes IS 'Untied output head [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.vision_bytes IS 'Vision and audio towers; for GGUF beside the total, in a file of their own [bytes]; source: model_tensor';
COMMENT ON COLUMN footprint.error IS 'Why there is no figure; source: fitmart.estimator.footprint';
