CREATE MACRO grid_context(model, context) AS (
    SELECT min(k.context_tokens)
    FROM kv_cache AS k
    WHERE k.model_id = model_key(model) AND k.context_tokens >= context
);
COMMENT ON MACRO grid_context IS -- noqa: PRS
'The next context of the grid, at or above the wanted one: answers are never too optimistic; null: beyond the model [tokens]; source: kv_cache';
