CREATE VIEW gpu_overview AS
WITH price AS (
    SELECT
        b.gpu_id,
        min(b.usd_per_hour) FILTER (WHERE b.commitment = 'on_demand') AS on_demand_usd_per_hour,
        min(b.usd_per_hour) FILTER (WHERE b.commitment = 'spot') AS spot_usd_per_hour
    FROM best_offer AS b
    WHERE b.gpu_count = 1
    GROUP BY b.gpu_id
)

SELECT
    g.gpu_id,
    g.name,
    g.vendor,
    g.gpu_architecture,
    g.form_factor,
    gib(g.memory_bytes) AS memory_gib,
    g.memory_basis,
    g.marketed_memory_gb,
    gib(g.memory_bytes * coalesce(g.addressable_share, 1)) AS usable_gib,
    round(g.bandwidth_bytes_per_s / 1e9, 1) AS bandwidth_gb_per_s,
    round(coalesce(g.bf16_flop_per_s, g.fp16_flop_per_s) / 1e12, 1) AS dense_16bit_tflop_per_s,
    round(g.fp8_flop_per_s / 1e12, 1) AS fp8_tflop_per_s,
    g.tdp_w,
    g.is_unified_memory,
    g.max_gpu_count,
    p.on_demand_usd_per_hour,
    p.spot_usd_per_hour,
    g.purchase_usd,
    g.confidence,
    g.is_released,
    g.source_id,
    g.observed_on
FROM gpu AS g
LEFT JOIN price AS p ON g.gpu_id = p.gpu_id;
COMMENT ON VIEW gpu_overview IS
'One row per accelerator: memory, rates, and the cheapest hour of one; source: gpu, best_offer';
COMMENT ON COLUMN gpu_overview.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN gpu_overview.name IS 'Name as sold; source: gpu';
COMMENT ON COLUMN gpu_overview.vendor IS 'Vendor; source: gpu';
COMMENT ON COLUMN gpu_overview.gpu_architecture IS 'Architecture; source: gpu';
COMMENT ON COLUMN gpu_overview.form_factor IS 'SXM, PCIe, OAM, …; source: gpu';
COMMENT ON COLUMN gpu_overview.memory_gib IS 'Memory the driver shows [GiB]; source: gpu';
COMMENT ON COLUMN gpu_overview.memory_basis IS 'How that is known; source: gpu';
COMMENT ON COLUMN gpu_overview.marketed_memory_gb IS 'Memory on the box [GB]; source: gpu';
COMMENT ON COLUMN gpu_overview.usable_gib IS 'Memory times the share of unified memory the GPU may use [GiB]; source: gpu';
COMMENT ON COLUMN gpu_overview.bandwidth_gb_per_s IS 'Memory bandwidth [GB/s]; source: gpu';
COMMENT ON COLUMN gpu_overview.dense_16bit_tflop_per_s IS 'Dense BF16 rate, else FP16 [TFLOP/s]; source: gpu';
COMMENT ON COLUMN gpu_overview.fp8_tflop_per_s IS 'Dense FP8 rate; null: not supported [TFLOP/s]; source: gpu';
COMMENT ON COLUMN gpu_overview.tdp_w IS 'Board power [W]; source: gpu';
COMMENT ON COLUMN gpu_overview.is_unified_memory IS 'Whether CPU and GPU share the memory; source: gpu';
COMMENT ON COLUMN gpu_overview.max_gpu_count IS 'Most of them in one node [count]; source: gpu';
COMMENT ON COLUMN gpu_overview.on_demand_usd_per_hour IS 'Cheapest hour of one on demand [USD/h]; source: best_offer';
COMMENT ON COLUMN gpu_overview.spot_usd_per_hour IS 'Cheapest interruptible hour of one [USD/h]; source: best_offer';
COMMENT ON COLUMN gpu_overview.purchase_usd IS 'Street price of one [USD]; source: gpu';
COMMENT ON COLUMN gpu_overview.confidence IS 'high, medium or low; source: gpu';
COMMENT ON COLUMN gpu_overview.is_released IS 'Whether it can be had; source: gpu';
COMMENT ON COLUMN gpu_overview.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN gpu_overview.observed_on IS 'Day the facts were looked up; source: gpu';
