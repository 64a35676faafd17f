-- Accelerators.

CREATE TABLE gpu (
    gpu_id gpu_id NOT NULL,
    name VARCHAR NOT NULL,
    vendor VARCHAR NOT NULL,
    gpu_architecture VARCHAR,
    form_factor VARCHAR,
    memory_bytes BIGINT NOT NULL,
    memory_basis VARCHAR,
    marketed_memory_gb DOUBLE,
    bandwidth_bytes_per_s DOUBLE,
    fp32_flop_per_s DOUBLE,
    fp16_flop_per_s DOUBLE,
    bf16_flop_per_s DOUBLE,
    fp8_flop_per_s DOUBLE,
    fp4_flop_per_s DOUBLE,
    int8_op_per_s DOUBLE,
    tdp_w DOUBLE,
    is_unified_memory BOOLEAN NOT NULL,
    addressable_share DOUBLE,
    max_gpu_count BIGINT,
    purchase_usd DOUBLE,
    compute_capability VARCHAR,
    confidence VARCHAR,
    is_released BOOLEAN NOT NULL,
    source_id VARCHAR NOT NULL,
    torch_memory_bytes BIGINT,
    torch_memory_basis VARCHAR,
    memory_type VARCHAR,
    bandwidth_basis VARCHAR,
    flop_basis VARCHAR,
    unified_basis VARCHAR,
    interconnect_bytes_per_s DOUBLE,
    release_year BIGINT,
    purchase_basis VARCHAR,
    purchased_on DATE,
    device_count BIGINT,
    notes VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE gpu IS 'One row per accelerator; source: warehouse/seeds/gpu.csv (data sheets, driver logs)';
COMMENT ON COLUMN gpu.gpu_id IS 'Key: vendor, model, memory, lower-case; source: seed';
COMMENT ON COLUMN gpu.name IS 'Name as sold; source: vendor';
COMMENT ON COLUMN gpu.vendor IS 'NVIDIA, AMD, Intel, Apple, Huawei, …; source: vendor';
COMMENT ON COLUMN gpu.gpu_architecture IS 'Hopper, CDNA3, M4, …; source: vendor';
COMMENT ON COLUMN gpu.form_factor IS 'SXM, PCIe, OAM, laptop, SoC, …; source: vendor';
COMMENT ON COLUMN gpu.memory_bytes IS 'Memory the driver shows [bytes]; source: driver logs, else scaled (memory_basis)';
COMMENT ON COLUMN gpu.memory_basis IS 'How memory_bytes is known: measured, published, scaled, assumed; source: seed';
COMMENT ON COLUMN gpu.marketed_memory_gb IS 'Memory on the box [GB]; source: vendor';
COMMENT ON COLUMN gpu.bandwidth_bytes_per_s IS 'Memory bandwidth [bytes/s]; source: data sheet';
COMMENT ON COLUMN gpu.fp32_flop_per_s IS 'Dense FP32 rate [FLOP/s]; source: data sheet';
COMMENT ON COLUMN gpu.fp16_flop_per_s IS 'Dense FP16 tensor rate [FLOP/s]; source: data sheet';
COMMENT ON COLUMN gpu.bf16_flop_per_s IS 'Dense BF16 tensor rate; null: not supported [FLOP/s]; source: data sheet';
COMMENT ON COLUMN gpu.fp8_flop_per_s IS 'Dense FP8 tensor rate; null: not supported [FLOP/s]; source: data sheet';
COMMENT ON COLUMN gpu.fp4_flop_per_s IS 'Dense FP4 tensor rate; null: not supported [FLOP/s]; source: data sheet';
COMMENT ON COLUMN gpu.int8_op_per_s IS 'Dense INT8 tensor rate; null: not supported [op/s]; source: data sheet';
COMMENT ON COLUMN gpu.tdp_w IS 'Board power [W]; source: data sheet';
COMMENT ON COLUMN gpu.is_unified_memory IS 'Whether CPU and GPU share the memory; source: vendor';
COMMENT ON COLUMN gpu.addressable_share IS 'Share of unified memory that the GPU may use; null: discrete [share]; source: vendor (unified_basis)';
COMMENT ON COLUMN gpu.max_gpu_count IS 'Most of them in one node [count]; source: seed';
COMMENT ON COLUMN gpu.purchase_usd IS 'Street price of one [USD]; source: seed (purchase_basis, purchased_on)';
COMMENT ON COLUMN gpu.compute_capability IS 'CUDA compute capability or gfx name; source: vendor';
COMMENT ON COLUMN gpu.confidence IS 'high, medium or low: how sure the row is; source: seed';
COMMENT ON COLUMN gpu.is_released IS 'Whether it can be had; source: vendor';
COMMENT ON COLUMN gpu.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN gpu.torch_memory_bytes IS 'Memory the CUDA or HIP runtime gives to torch, what vLLM budgets [bytes]; source: engine logs, else scaled';
COMMENT ON COLUMN gpu.torch_memory_basis IS 'How torch_memory_bytes is known; source: seed';
COMMENT ON COLUMN gpu.memory_type IS 'HBM3, GDDR6X, LPDDR5X, …; source: data sheet';
COMMENT ON COLUMN gpu.bandwidth_basis IS 'How bandwidth_bytes_per_s is known; source: seed';
COMMENT ON COLUMN gpu.flop_basis IS 'How the rates are known; source: seed';
COMMENT ON COLUMN gpu.unified_basis IS 'How addressable_share is known; source: seed';
COMMENT ON COLUMN gpu.interconnect_bytes_per_s IS 'One GPU''s link to the others, one direction [bytes/s]; source: data sheet';
COMMENT ON COLUMN gpu.release_year IS 'Year it was released [year]; source: vendor';
COMMENT ON COLUMN gpu.purchase_basis IS 'Whose price purchase_usd is; source: seed';
COMMENT ON COLUMN gpu.purchased_on IS 'Day of purchase_usd; source: seed';
COMMENT ON COLUMN gpu.device_count IS 'Devices the runtime sees in one card; memory and rates are the card''s [count]; source: vendor';
COMMENT ON COLUMN gpu.notes IS 'What a reader should know; source: seed';
COMMENT ON COLUMN gpu.observed_on IS 'Day the facts were looked up; source: seed';
