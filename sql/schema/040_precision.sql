-- Precisions: which format each part of a model has.

CREATE TABLE precision (
    precision_id precision_id NOT NULL,
    precision_class VARCHAR NOT NULL,
    format VARCHAR GENERATED ALWAYS AS (linear_format) VIRTUAL,
    bits_per_weight DOUBLE,
    keeps_unquantized VARCHAR,
    is_in_grid BOOLEAN NOT NULL,
    container VARCHAR NOT NULL,
    engine_id engine_id,
    linear_format VARCHAR,
    experts_format VARCHAR,
    embedding_format VARCHAR,
    lm_head_format VARCHAR,
    other_format VARCHAR,
    notes VARCHAR,
    source_id VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE precision IS 'One row per precision a model can be served at; source: warehouse/seeds/precision.csv';
COMMENT ON COLUMN precision.precision_id IS 'Key: bf16, fp8, awq-int4, gguf-q4_k_m, …; source: seed';
COMMENT ON COLUMN precision.precision_class IS 'What the pages compare whichever engine runs it: bf16, fp8, int8, int4, …; source: seed';
COMMENT ON COLUMN precision.format IS 'Format of the big matrices, as linear_format; source: seed';
COMMENT ON COLUMN precision.bits_per_weight IS 'Nominal bits of one weight of the big matrices [bits]; source: format definition';
COMMENT ON COLUMN precision.keeps_unquantized IS 'What stays at 16 bit, in words; source: seed';
COMMENT ON COLUMN precision.is_in_grid IS 'Whether the marts hold it; source: seed';
COMMENT ON COLUMN precision.container IS 'hf, gguf, mlx or exl: whose rules choose each tensor''s format; source: seed';
COMMENT ON COLUMN precision.engine_id IS 'Engine that runs it by default; source: seed';
COMMENT ON COLUMN precision.linear_format IS 'Format of attention and MLP matrices; source: seed';
COMMENT ON COLUMN precision.experts_format IS 'Format of routed experts; source: seed';
COMMENT ON COLUMN precision.embedding_format IS 'Format of the token embedding; source: seed';
COMMENT ON COLUMN precision.lm_head_format IS 'Format of the output head; source: seed';
COMMENT ON COLUMN precision.other_format IS 'Format of norms, routers, towers, convolutions; source: seed';
COMMENT ON COLUMN precision.notes IS 'What a reader should know; source: seed';
COMMENT ON COLUMN precision.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN precision.observed_on IS 'Day the facts were looked up; source: seed';
