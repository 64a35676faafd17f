-- Closed lists of words. The keys that come from data (model_id, gpu_id, …) are made into types before these, by the loader.

CREATE TYPE verdict AS ENUM ('fits', 'tight', 'no', 'unknown');
CREATE TYPE limited_by AS ENUM ('weights', 'kv_cache', 'context', 'tp_divisibility', 'unsupported', 'unknown');
CREATE TYPE support AS ENUM ('native', 'weight_only', 'emulated', 'plugin', 'unsupported', 'unknown');
CREATE TYPE commitment AS ENUM ('on_demand', 'spot', 'reserved');
CREATE TYPE kv_precision AS ENUM ('bf16', 'fp8', 'q8_0', 'q4_0');
