-- Mart: what it costs.

CREATE TABLE cost (
    model_id model_id NOT NULL,
    precision_id precision_id NOT NULL,
    engine_id engine_id NOT NULL,
    gpu_id gpu_id NOT NULL,
    gpu_count SMALLINT NOT NULL,
    context_tokens INTEGER NOT NULL,
    on_demand_offer_id offer_id,
    spot_offer_id offer_id,
    usd_per_hour DECIMAL(12, 6),
    usd_per_month DECIMAL(12, 2),
    usd_per_mtok DOUBLE,
    usd_per_mtok_low DOUBLE,
    usd_per_mtok_high DOUBLE,
    utilisation_share DOUBLE,
    power_usd_per_month DOUBLE,
    purchase_usd DOUBLE,
    payback_months DOUBLE,
    spot_usd_per_hour DECIMAL(12, 6),
    usd_per_mtok_blended DOUBLE,
    usd_per_mtok_blended_low DOUBLE,
    usd_per_mtok_blended_high DOUBLE
);
COMMENT ON TABLE cost IS 'One row per row of speed; prices are those of exactly that GPU and count, null where nobody offers it; source: fitmart.estimator.cost';
COMMENT ON COLUMN cost.model_id IS 'Model; source: model';
COMMENT ON COLUMN cost.precision_id IS 'Precision; source: precision';
COMMENT ON COLUMN cost.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN cost.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN cost.gpu_count IS 'GPUs [count]; source: grid';
COMMENT ON COLUMN cost.context_tokens IS 'Context of each user [tokens]; source: grid';
COMMENT ON COLUMN cost.on_demand_offer_id IS 'Cheapest offer on demand; source: best_offer';
COMMENT ON COLUMN cost.spot_offer_id IS 'Cheapest interruptible offer; source: best_offer';
COMMENT ON COLUMN cost.usd_per_hour IS 'Rent on demand, all GPUs [USD/h]; source: best_offer';
COMMENT ON COLUMN cost.usd_per_month IS 'Rent of 730 hours [USD/month]; source: usd_per_hour × 730';
COMMENT ON COLUMN cost.usd_per_mtok IS 'A million output tokens with the prompts they answer (3:1), at throughput and utilisation_share [USD/Mtok]; source: fitmart.estimator.cost';
COMMENT ON COLUMN cost.usd_per_mtok_low IS 'Low end [USD/Mtok]; source: high end of the throughput';
COMMENT ON COLUMN cost.usd_per_mtok_high IS 'High end [USD/Mtok]; source: low end of the throughput';
COMMENT ON COLUMN cost.utilisation_share IS 'Share of paid hours in which the GPUs serve at that throughput [share]; source: assumption of fitmart.estimator.cost';
COMMENT ON COLUMN cost.power_usd_per_month IS 'Electricity of owned GPUs at TDP around the clock [USD/month]; source: gpu.tdp_w';
COMMENT ON COLUMN cost.purchase_usd IS 'Buying the GPUs [USD]; source: gpu.purchase_usd × gpu_count';
COMMENT ON COLUMN cost.payback_months IS 'Months of rent, less electricity, that pay the purchase [months]; source: fitmart.estimator.cost';
COMMENT ON COLUMN cost.spot_usd_per_hour IS 'Rent of the interruptible offer, all GPUs [USD/h]; source: best_offer';
COMMENT ON COLUMN cost.usd_per_mtok_blended IS 'A million tokens of prompt and answer, 3:1, at throughput and utilisation_share [USD/Mtok]; source: fitmart.estimator.cost';
COMMENT ON COLUMN cost.usd_per_mtok_blended_low IS 'Low end [USD/Mtok]; source: high end of the throughput';
COMMENT ON COLUMN cost.usd_per_mtok_blended_high IS 'High end [USD/Mtok]; source: low end of the throughput';
