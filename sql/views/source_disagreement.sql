CREATE VIEW source_disagreement AS
SELECT
    h.provider_id,
    h.instance_type,
    h.gpu_id,
    h.gpu_count,
    h.region,
    h.commitment,
    h.commit_term,
    h.tier,
    r.standing_source_id,
    r.standing_usd_per_hour,
    h.last_seen_at AS standing_seen_at,
    r.source_id,
    r.usd_per_hour,
    r.observed_at,
    round(r.usd_per_hour / r.standing_usd_per_hour - 1, 4) AS difference_share,
    r.offer_id
FROM offer_rival AS r
INNER JOIN offer_history AS h ON r.offer_id = h.offer_id AND h.valid_to IS NULL;
COMMENT ON VIEW source_disagreement IS
'One row per offer and source that has named another price since the one that stands began to; source: offer_rival, offer_history';
COMMENT ON COLUMN source_disagreement.provider_id IS 'Who bills it; source: provider';
COMMENT ON COLUMN source_disagreement.instance_type IS 'The provider''s name of it; source: price list';
COMMENT ON COLUMN source_disagreement.gpu_id IS 'GPU inside; source: gpu';
COMMENT ON COLUMN source_disagreement.gpu_count IS 'GPUs inside [count]; source: price list';
COMMENT ON COLUMN source_disagreement.region IS 'The provider''s name of the region; source: price list';
COMMENT ON COLUMN source_disagreement.commitment IS 'on_demand, spot or reserved; source: price list';
COMMENT ON COLUMN source_disagreement.commit_term IS 'How long one binds oneself (reserved); source: price list';
COMMENT ON COLUMN source_disagreement.tier IS 'secure, community, …; source: price list';
COMMENT ON COLUMN source_disagreement.standing_source_id IS 'Whose price stands; source: source';
COMMENT ON COLUMN source_disagreement.standing_usd_per_hour IS 'The price that stands [USD/h]; source: offer_history';
COMMENT ON COLUMN source_disagreement.standing_seen_at IS 'When that was last seen (UTC); source: offer_history';
COMMENT ON COLUMN source_disagreement.source_id IS 'Who says otherwise; source: source';
COMMENT ON COLUMN source_disagreement.usd_per_hour IS 'Its price of the whole offer [USD/h]; source: offer_rival';
COMMENT ON COLUMN source_disagreement.observed_at IS 'When that was last seen (UTC); source: offer_rival';
COMMENT ON COLUMN source_disagreement.difference_share IS 'Its price / the standing one - 1 [share]; source: quotient';
COMMENT ON COLUMN source_disagreement.offer_id IS 'Offer; source: offer';
