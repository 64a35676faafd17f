CREATE MACRO gb(size_bytes) AS round(size_bytes / 1e9, 2);
COMMENT ON MACRO gb IS -- noqa: PRS
'Bytes as GB (10^9), two decimals [GB]; source: argument';
