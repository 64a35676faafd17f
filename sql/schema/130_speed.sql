-- Mart: how fast.

CREATE TABLE speed (
    model_id model_id NOT NULL,
    precision_id precision_id NOT NULL,
    engine_id engine_id NOT NULL,
    gpu_id gpu_id NOT NULL,
    gpu_count SMALLINT NOT NULL,
    context_tokens INTEGER NOT NULL,
    decode_tokens_per_s DOUBLE,
    decode_tokens_per_s_low DOUBLE,
    decode_tokens_per_s_high DOUBLE,
    prefill_tokens_per_s DOUBLE,
    prefill_tokens_per_s_low DOUBLE,
    prefill_tokens_per_s_high DOUBLE,
    ttft_ms DOUBLE,
    ttft_ms_low DOUBLE,
    ttft_ms_high DOUBLE,
    throughput_tokens_per_s DOUBLE,
    throughput_tokens_per_s_low DOUBLE,
    throughput_tokens_per_s_high DOUBLE,
    served_users INTEGER,
    decode_fixed_s DOUBLE,
    decode_experts_s DOUBLE,
    decode_s_per_user DOUBLE,
    decode_s_per_kv_token DOUBLE,
    prefill_s_per_token DOUBLE,
    prefill_fixed_s DOUBLE
);
COMMENT ON TABLE speed IS 'One row per row of fit whose verdict is fits or tight; figures carry four digits; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.model_id IS 'Model; source: model';
COMMENT ON COLUMN speed.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN speed.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN speed.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN speed.gpu_count IS 'GPUs [count]; source: grid';
COMMENT ON COLUMN speed.context_tokens IS 'Context of each user [tokens]; source: grid';
COMMENT ON COLUMN speed.decode_tokens_per_s IS 'Output of one user alone [tokens/s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.decode_tokens_per_s_low IS 'Low end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.decode_tokens_per_s_high IS 'High end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.prefill_tokens_per_s IS 'Prompt tokens read, one request [tokens/s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.prefill_tokens_per_s_low IS 'Low end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.prefill_tokens_per_s_high IS 'High end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.ttft_ms IS 'Time to the first token of a prompt of that context, one request [ms]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.ttft_ms_low IS 'Low end [ms]; source: 80 % band';
COMMENT ON COLUMN speed.ttft_ms_high IS 'High end [ms]; source: 80 % band';
COMMENT ON COLUMN speed.throughput_tokens_per_s IS 'Output of all served_users together, over whole requests [tokens/s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.throughput_tokens_per_s_low IS 'Low end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.throughput_tokens_per_s_high IS 'High end [tokens/s]; source: 80 % band';
COMMENT ON COLUMN speed.served_users IS 'Users served at once for throughput_tokens_per_s: those that fit, 256 at most, and no more than still get 10 tokens/s each; one at least [count]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.decode_fixed_s IS 'Decode step: part that no user adds to, routed experts apart [s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.decode_experts_s IS 'Decode step: reading every routed expert; n users read 1 - (1 - k / e)^n of it, with k of e experts a token [s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.decode_s_per_user IS 'Decode step: part of each user [s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.decode_s_per_kv_token IS 'Decode step: part of each token in the cache [s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.prefill_s_per_token IS 'Prefill: part of each prompt token [s]; source: fitmart.estimator.speed';
COMMENT ON COLUMN speed.prefill_fixed_s IS 'Prefill: one pass over all weights, what a shorter prompt takes at most beyond its share of this one [s]; source: fitmart.estimator.speed';
