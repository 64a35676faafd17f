CREATE MACRO is_doubtful(quality_flags) AS
list_has_any(
    string_split(coalesce(quality_flags, ''), '|'),
    [
        'spot_not_below_on_demand',
        'price_outlier',
        'spot_suspiciously_low',
        'tier_mislabelled',
        'average',
        'estimated',
        'fixture_invented',
        'fractional_gpu',
        'zero_price'
    ]
);
COMMENT ON MACRO is_doubtful IS -- noqa: PRS
'Whether an offer''s flags keep it out of the cheapest ones; source: fitmart.estimator.offers';
