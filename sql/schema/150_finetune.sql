-- Mart: the memory of training.

CREATE TABLE finetune (
    model_id model_id NOT NULL,
    method VARCHAR NOT NULL,
    optimizer VARCHAR NOT NULL,
    sequence_tokens INTEGER NOT NULL,
    gpu_count SMALLINT NOT NULL,
    weights_bytes BIGINT,
    adapter_bytes BIGINT,
    gradients_bytes BIGINT,
    optimizer_bytes BIGINT,
    activation_bytes BIGINT,
    logits_bytes BIGINT,
    overhead_bytes BIGINT,
    total_bytes BIGINT,
    lora_rank INTEGER,
    batch INTEGER,
    is_checkpointed BOOLEAN,
    smallest_gpu_id gpu_id
);
COMMENT ON TABLE finetune IS 'One row per model, method, optimizer, sequence length and GPU count: the bytes of one of those GPUs; source: fitmart.estimator.finetune';
COMMENT ON COLUMN finetune.model_id IS 'Model; source: model';
COMMENT ON COLUMN finetune.method IS 'full, lora or qlora; source: grid';
COMMENT ON COLUMN finetune.optimizer IS 'adamw (fp32 states and master weights), adamw-bf16, paged-adamw-8bit, …; source: grid';
COMMENT ON COLUMN finetune.sequence_tokens IS 'Length of a training sequence [tokens]; source: grid';
COMMENT ON COLUMN finetune.gpu_count IS 'GPUs the states are spread over [count]; source: grid';
COMMENT ON COLUMN finetune.weights_bytes IS 'Base weights [bytes]; source: model_tensor';
COMMENT ON COLUMN finetune.adapter_bytes IS 'Adapters (lora, qlora) [bytes]; source: model_tensor';
COMMENT ON COLUMN finetune.gradients_bytes IS 'Gradients [bytes]; source: trained parameters';
COMMENT ON COLUMN finetune.optimizer_bytes IS 'Optimizer states and master weights [bytes]; source: trained parameters';
COMMENT ON COLUMN finetune.activation_bytes IS 'Activations of one step [bytes]; source: model, sequence and batch';
COMMENT ON COLUMN finetune.logits_bytes IS 'Logits and their gradient [bytes]; source: vocabulary × sequence × batch';
COMMENT ON COLUMN finetune.overhead_bytes IS 'Context of the device, workspaces and fragments [bytes]; source: fitted to published peaks';
COMMENT ON COLUMN finetune.total_bytes IS 'Sum of the parts, one GPU [bytes]; source: sum';
COMMENT ON COLUMN finetune.lora_rank IS 'Rank of the adapters; null: full [count]; source: grid';
COMMENT ON COLUMN finetune.batch IS 'Sequences of one GPU in a step [count]; source: grid';
COMMENT ON COLUMN finetune.is_checkpointed IS 'Whether activations are recomputed; source: grid';
COMMENT ON COLUMN finetune.smallest_gpu_id IS 'Smallest GPU of which gpu_count hold it; null: none; source: gpu';
