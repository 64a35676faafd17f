-- What renting costs.

CREATE TABLE offer (
    offer_id offer_id NOT NULL,
    provider_id VARCHAR NOT NULL,
    instance_type VARCHAR,
    gpu_id gpu_id NOT NULL,
    gpu_count BIGINT NOT NULL,
    region VARCHAR,
    commitment commitment NOT NULL,
    commit_term VARCHAR,
    tier VARCHAR,
    gpu_name_raw VARCHAR,
    is_gpu_assumed BOOLEAN,
    min_gpu_count BIGINT,
    max_gpu_count BIGINT,
    price_scope VARCHAR NOT NULL,
    product_kind VARCHAR,
    seller VARCHAR,
    vcpus DOUBLE,
    host_memory_bytes BIGINT,
    country VARCHAR,
    is_eu BOOLEAN,
    usd_per_hour DECIMAL(12, 6) NOT NULL,
    usd_per_gpu_hour DECIMAL(12, 6),
    amount DECIMAL(18, 6),
    currency VARCHAR,
    fx_rate DOUBLE,
    fx_on DATE,
    billing_granularity VARCHAR,
    url VARCHAR,
    source_id VARCHAR NOT NULL,
    observed_at TIMESTAMP NOT NULL,
    is_stale BOOLEAN,
    gpu_memory_gib DOUBLE,
    quality_flags VARCHAR,
    origin VARCHAR,
    date_kind VARCHAR
);
COMMENT ON TABLE offer IS 'One row per offer as it stands: what one provider asks for one instance type in one region; source: price lists';
COMMENT ON COLUMN offer.offer_id IS 'Key: hash of provider, instance type, GPU, count, region, commitment, term and tier; source: build';
COMMENT ON COLUMN offer.provider_id IS 'Who bills it; source: provider';
COMMENT ON COLUMN offer.instance_type IS 'The provider''s name of it; source: price list';
COMMENT ON COLUMN offer.gpu_id IS 'GPU inside; source: gpu, by the raw name';
COMMENT ON COLUMN offer.gpu_count IS 'GPUs inside [count]; source: price list';
COMMENT ON COLUMN offer.region IS 'The provider''s name of the region; source: price list';
COMMENT ON COLUMN offer.commitment IS 'on_demand, spot or reserved; source: price list';
COMMENT ON COLUMN offer.commit_term IS 'How long one binds oneself (reserved); source: price list';
COMMENT ON COLUMN offer.tier IS 'secure, community, …; source: price list';
COMMENT ON COLUMN offer.gpu_name_raw IS 'The GPU as the price list spells it; source: price list';
COMMENT ON COLUMN offer.is_gpu_assumed IS 'Whether the raw name left a choice; source: name resolution';
COMMENT ON COLUMN offer.min_gpu_count IS 'Fewest GPUs one may take (per_gpu) [count]; source: price list';
COMMENT ON COLUMN offer.max_gpu_count IS 'Most GPUs one may take (per_gpu) [count]; source: price list';
COMMENT ON COLUMN offer.price_scope IS 'instance, per_gpu or gpu_only (without its host); source: price list';
COMMENT ON COLUMN offer.product_kind IS 'vm, bare_metal, managed or serverless; source: price list';
COMMENT ON COLUMN offer.seller IS 'Who sells it on a marketplace; source: price list';
COMMENT ON COLUMN offer.vcpus IS 'Virtual CPUs [count]; source: price list';
COMMENT ON COLUMN offer.host_memory_bytes IS 'Memory of the host [bytes]; source: price list';
COMMENT ON COLUMN offer.country IS 'ISO code of the region''s country; source: region name';
COMMENT ON COLUMN offer.is_eu IS 'Whether the region is inside the EU; source: region name';
COMMENT ON COLUMN offer.usd_per_hour IS 'Price of the whole offer [USD/h]; source: amount × fx_rate';
COMMENT ON COLUMN offer.usd_per_gpu_hour IS 'Price of one GPU of it [USD/h]; source: usd_per_hour / gpu_count';
COMMENT ON COLUMN offer.amount IS 'Price as asked, a whole hour [currency/h]; source: price list';
COMMENT ON COLUMN offer.currency IS 'ISO code of amount; source: price list';
COMMENT ON COLUMN offer.fx_rate IS 'USD for one unit of currency [USD/currency]; source: exchange rates';
COMMENT ON COLUMN offer.fx_on IS 'Day of fx_rate; source: exchange rates';
COMMENT ON COLUMN offer.billing_granularity IS 'Smallest unit that is billed; source: price list';
COMMENT ON COLUMN offer.url IS 'Where a person can look it up; source: price list';
COMMENT ON COLUMN offer.source_id IS 'Where the price comes from; source: source';
COMMENT ON COLUMN offer.observed_at IS 'When the price was seen (UTC); source: landing or seed';
COMMENT ON COLUMN offer.is_stale IS 'Whether observed_at is older than the source''s max_age_hours at build.built_at; source: build';
COMMENT ON COLUMN offer.gpu_memory_gib IS 'Memory of one GPU as the price list has it [GiB]; source: price list';
COMMENT ON COLUMN offer.quality_flags IS 'Doubts about the row, joined by |; source: seed';
COMMENT ON COLUMN offer.origin IS 'direct, aggregator or seed: the first there is stands for an offer; source: build';
COMMENT ON COLUMN offer.date_kind IS 'exact, approx or matched: how sure observed_at is; source: seed';

CREATE TABLE offer_history (
    offer_id VARCHAR NOT NULL,
    valid_from TIMESTAMP NOT NULL,
    valid_to TIMESTAMP,
    last_seen_at TIMESTAMP NOT NULL,
    provider_id VARCHAR NOT NULL,
    instance_type VARCHAR,
    gpu_id gpu_id,
    gpu_count BIGINT,
    region VARCHAR,
    commitment commitment,
    commit_term VARCHAR,
    tier VARCHAR,
    price_scope VARCHAR,
    product_kind VARCHAR,
    quality_flags VARCHAR,
    usd_per_hour DECIMAL(12, 6) NOT NULL,
    usd_per_gpu_hour DECIMAL(12, 6),
    amount DECIMAL(18, 6),
    currency VARCHAR,
    source_id VARCHAR NOT NULL
);
COMMENT ON TABLE offer_history IS 'One row per offer and span of time in which its price stood; source: landing';
COMMENT ON COLUMN offer_history.offer_id IS 'Offer, also those no longer asked; source: build';
COMMENT ON COLUMN offer_history.valid_from IS 'When the price was first seen (UTC); source: landing';
COMMENT ON COLUMN offer_history.valid_to IS 'When another took its place or the offer was gone; null: current (UTC); source: landing';
COMMENT ON COLUMN offer_history.last_seen_at IS 'When the price was last seen: its age counts from here (UTC); source: landing, source_run';
COMMENT ON COLUMN offer_history.provider_id IS 'Who bills it; source: provider';
COMMENT ON COLUMN offer_history.instance_type IS 'The provider''s name of it; source: price list';
COMMENT ON COLUMN offer_history.gpu_id IS 'GPU inside; source: gpu, by the raw name';
COMMENT ON COLUMN offer_history.gpu_count IS 'GPUs inside [count]; source: price list';
COMMENT ON COLUMN offer_history.region IS 'The provider''s name of the region; source: price list';
COMMENT ON COLUMN offer_history.commitment IS 'on_demand, spot or reserved; source: price list';
COMMENT ON COLUMN offer_history.commit_term IS 'How long one binds oneself (reserved); source: price list';
COMMENT ON COLUMN offer_history.tier IS 'secure, community, …; source: price list';
COMMENT ON COLUMN offer_history.price_scope IS 'instance, per_gpu or gpu_only (without its host); source: price list';
COMMENT ON COLUMN offer_history.product_kind IS 'vm, bare_metal, managed or serverless; source: price list';
COMMENT ON COLUMN offer_history.quality_flags IS 'Doubts about the row, joined by |; source: seed, name resolution';
COMMENT ON COLUMN offer_history.usd_per_hour IS 'Price of the whole offer, at the exchange rate of valid_from [USD/h]; source: amount × fx_rate';
COMMENT ON COLUMN offer_history.usd_per_gpu_hour IS 'Price of one GPU of it [USD/h]; source: usd_per_hour / gpu_count';
COMMENT ON COLUMN offer_history.amount IS 'Price as asked [currency/h]; source: price list';
COMMENT ON COLUMN offer_history.currency IS 'ISO code of amount; source: price list';
COMMENT ON COLUMN offer_history.source_id IS 'Where the price comes from; source: source';

CREATE TABLE offer_rival (
    offer_id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    usd_per_hour DECIMAL(12, 6) NOT NULL,
    observed_at TIMESTAMP NOT NULL,
    standing_usd_per_hour DECIMAL(12, 6) NOT NULL,
    standing_source_id VARCHAR NOT NULL
);
COMMENT ON TABLE offer_rival IS 'One row per offer and source that has named another price, by more than rounding, since the one that stands began to; source: landing, seeds';
COMMENT ON COLUMN offer_rival.offer_id IS 'Offer; source: offer';
COMMENT ON COLUMN offer_rival.source_id IS 'Who says otherwise; source: source';
COMMENT ON COLUMN offer_rival.usd_per_hour IS 'Its price of the whole offer [USD/h]; source: price list';
COMMENT ON COLUMN offer_rival.observed_at IS 'When that was last seen (UTC); source: landing or seed';
COMMENT ON COLUMN offer_rival.standing_usd_per_hour IS 'The price that stands [USD/h]; source: offer_history';
COMMENT ON COLUMN offer_rival.standing_source_id IS 'Whose price stands; source: source';

CREATE TABLE best_offer (
    gpu_id gpu_id NOT NULL,
    gpu_count SMALLINT NOT NULL,
    commitment commitment NOT NULL,
    offer_id offer_id NOT NULL,
    usd_per_hour DECIMAL(12, 6) NOT NULL,
    price_basis VARCHAR NOT NULL,
    provider_id VARCHAR,
    observed_at TIMESTAMP
);
COMMENT ON TABLE best_offer IS 'One row per GPU, count and commitment: the cheapest offer of the last 90 days that serves it; source: offer, chosen at build';
COMMENT ON COLUMN best_offer.gpu_id IS 'GPU; source: gpu';
COMMENT ON COLUMN best_offer.gpu_count IS 'GPUs [count]; source: grid';
COMMENT ON COLUMN best_offer.commitment IS 'on_demand, spot or reserved; source: offer';
COMMENT ON COLUMN best_offer.offer_id IS 'The offer; source: offer';
COMMENT ON COLUMN best_offer.usd_per_hour IS 'Price of exactly that many GPUs [USD/h]; source: offer, scaled where price_basis says so';
COMMENT ON COLUMN best_offer.price_basis IS 'offered (as asked) or scaled (a per_gpu offer × count within its range); source: build';
COMMENT ON COLUMN best_offer.provider_id IS 'Who bills it; source: offer';
COMMENT ON COLUMN best_offer.observed_at IS 'When the price was seen (UTC); source: offer';
