-- The key of finetune names one row.
SELECT
    model_id,
    method,
    optimizer,
    sequence_tokens,
    gpu_count,
    lora_rank,
    batch,
    is_checkpointed,
    count(*) AS copies
FROM finetune
GROUP BY model_id, method, optimizer, sequence_tokens, gpu_count, lora_rank, batch, is_checkpointed
HAVING count(*) > 1;
