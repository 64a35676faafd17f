CREATE MACRO gib(size_bytes) AS round(size_bytes / 2.0 ^ 30, 2);
COMMENT ON MACRO gib IS -- noqa: PRS
'Bytes as GiB (2^30), two decimals [GiB]; source: argument';
