CREATE MACRO finetuning(model, sequence := 2048) AS TABLE
SELECT
    t.method,
    t.optimizer,
    t.sequence_tokens,
    t.gpu_count,
    t.lora_rank,
    gib(t.weights_bytes) AS weights_gib,
    gib(t.adapter_bytes) AS adapter_gib,
    gib(t.gradients_bytes) AS gradients_gib,
    gib(t.optimizer_bytes) AS optimizer_gib,
    gib(t.activation_bytes) AS activation_gib,
    gib(t.logits_bytes) AS logits_gib,
    gib(t.overhead_bytes) AS overhead_gib,
    gib(t.total_bytes) AS total_gib,
    gib(t.total_bytes * t.gpu_count) AS all_gpus_gib,
    t.smallest_gpu_id,
    g.name AS smallest_gpu,
    b.usd_per_hour,
    -- 6, 4 or 8 operations a parameter and token: forward, backward, and forward again where activations are not kept.
    round(
        (4.0 + if(t.method = 'full', 2, 0) + if(t.is_checkpointed, 2, 0)) * m.params_active * 1e6
        / nullif(coalesce(g.bf16_flop_per_s, g.fp16_flop_per_s) * t.gpu_count * 0.4, 0) / 3600,
        2
    ) AS hours_per_mtok
FROM finetune AS t
INNER JOIN model AS m ON t.model_id = m.model_id
LEFT JOIN gpu AS g ON t.smallest_gpu_id = g.gpu_id
LEFT JOIN best_offer AS b
    ON t.smallest_gpu_id = b.gpu_id AND t.gpu_count = b.gpu_count AND b.commitment = 'on_demand'
WHERE
    t.model_id = model_key(model)
    AND t.sequence_tokens = (
        SELECT min(x.sequence_tokens)
        FROM finetune AS x
        WHERE x.model_id = model_key(model) AND x.sequence_tokens >= sequence
    )
ORDER BY t.method, t.optimizer, t.gpu_count;
COMMENT ON MACRO TABLE finetuning IS -- noqa: PRS
'finetuning(model, sequence): one row per method, optimizer and number of GPUs: the bytes of one GPU part by part (batch 1, checkpointed), the smallest GPU of which so many hold it, its rent, and the hours for a million tokens at 40 % of its 16-bit rate [GiB, USD/h, h]; source: finetune, gpu, best_offer';
