CREATE MACRO pipelined_share(engine, gpus, tokens) AS
if(
    engine = 'llama.cpp' AND gpus > 1,
    0.15 + 0.85 * (ceil(tokens / 512) + gpus - 1) / (greatest(ceil(tokens / 512), 1) * gpus),
    1.0
);
COMMENT ON MACRO pipelined_share IS -- noqa: PRS
'Time of a prompt whose chunks of 512 tokens run through the layers of several GPUs as a pipeline, of the time of one GPU after the other [share]; source: fitmart.estimator.speed_terms';
