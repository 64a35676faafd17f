-- Who rents GPUs.

CREATE TABLE provider (
    provider_id VARCHAR NOT NULL,
    name VARCHAR,
    billing_granularity VARCHAR,
    minimum_charge VARCHAR,
    jurisdiction VARCHAR,
    eu_regions VARCHAR,
    egress_usd_per_gb DOUBLE,
    has_scale_to_zero BOOLEAN,
    is_marketplace BOOLEAN,
    certifications VARCHAR,
    certification_basis VARCHAR,
    legal_name VARCHAR,
    headquarters_country VARCHAR,
    is_us_cloud_act BOOLEAN,
    has_spot BOOLEAN,
    url VARCHAR,
    basis VARCHAR,
    confidence VARCHAR,
    note VARCHAR,
    source_id VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE provider IS 'One row per provider; source: warehouse/seeds/provider.csv';
COMMENT ON COLUMN provider.provider_id IS 'Key: lower-case short name; source: seed';
COMMENT ON COLUMN provider.name IS 'Name as sold; source: provider';
COMMENT ON COLUMN provider.billing_granularity IS 'Smallest unit that is billed: second, minute, hour, month; source: provider';
COMMENT ON COLUMN provider.minimum_charge IS 'Least that is billed; source: provider';
COMMENT ON COLUMN provider.jurisdiction IS 'Law the contract is under; source: provider''s terms';
COMMENT ON COLUMN provider.eu_regions IS 'Regions inside the EU; source: provider';
COMMENT ON COLUMN provider.egress_usd_per_gb IS 'Price of outgoing traffic [USD/GB]; source: provider';
COMMENT ON COLUMN provider.has_scale_to_zero IS 'Whether an idle service costs nothing; source: provider';
COMMENT ON COLUMN provider.is_marketplace IS 'Whether third parties sell there; source: provider';
COMMENT ON COLUMN provider.certifications IS 'ISO 27001, SOC 2, …; source: provider (certification_basis)';
COMMENT ON COLUMN provider.certification_basis IS 'How the certifications are known; source: seed';
COMMENT ON COLUMN provider.legal_name IS 'Company behind it; source: provider''s imprint';
COMMENT ON COLUMN provider.headquarters_country IS 'ISO code of the country it is run from; source: provider''s imprint';
COMMENT ON COLUMN provider.is_us_cloud_act IS 'Whether the US CLOUD Act reaches it; source: its ownership';
COMMENT ON COLUMN provider.has_spot IS 'Whether it sells interruptible capacity; source: provider';
COMMENT ON COLUMN provider.url IS 'Where to look it up; source: provider';
COMMENT ON COLUMN provider.basis IS 'How the row is known; source: seed';
COMMENT ON COLUMN provider.confidence IS 'high, medium or low; source: seed';
COMMENT ON COLUMN provider.note IS 'What a reader should know; source: seed';
COMMENT ON COLUMN provider.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN provider.observed_on IS 'Day the facts were looked up; source: seed';

CREATE TABLE provider_alias (
    alias VARCHAR NOT NULL,
    provider_id VARCHAR NOT NULL
);
COMMENT ON TABLE provider_alias IS 'One row per other name of a provider; source: warehouse/seeds/provider_alias.csv';
COMMENT ON COLUMN provider_alias.alias IS 'Name a price list uses; source: price lists';
COMMENT ON COLUMN provider_alias.provider_id IS 'Provider it means; source: provider';
