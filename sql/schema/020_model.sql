-- Models, what they are made of, and what one sequence leaves in their caches.

CREATE TABLE model (
    model_id model_id NOT NULL,
    revision VARCHAR,
    family VARCHAR NOT NULL,
    architecture VARCHAR,
    model_type VARCHAR NOT NULL,
    task VARCHAR,
    params_total BIGINT NOT NULL,
    params_active BIGINT NOT NULL,
    params_embedding BIGINT,
    params_lm_head BIGINT,
    params_vision BIGINT,
    params_mtp BIGINT,
    stored_params BIGINT,
    stored_bytes BIGINT,
    layers BIGINT NOT NULL,
    hidden_size BIGINT NOT NULL,
    attention_heads BIGINT,
    kv_heads BIGINT,
    head_dim BIGINT,
    intermediate_size BIGINT,
    vocab_size BIGINT NOT NULL,
    experts BIGINT,
    experts_per_token BIGINT,
    attention_kind VARCHAR,
    max_context_tokens BIGINT,
    extended_context_tokens BIGINT,
    native_precision VARCHAR,
    quant_method VARCHAR,
    license VARCHAR,
    is_gated BOOLEAN,
    downloads BIGINT,
    likes BIGINT,
    released_on DATE,
    base_model VARCHAR,
    source_id VARCHAR NOT NULL,
    observed_at TIMESTAMP,
    expert_intermediate_size BIGINT,
    shared_expert_intermediate_size BIGINT,
    moe_layers BIGINT,
    q_lora_rank BIGINT,
    kv_lora_rank BIGINT,
    native_dtype VARCHAR,
    kv_cache_scheme VARCHAR,
    is_tied BOOLEAN,
    is_multimodal BOOLEAN,
    is_encoder BOOLEAN,
    mtp_layers BIGINT,
    anatomy_basis VARCHAR
);
COMMENT ON TABLE model IS 'One row per model at its newest revision; source: Hub or private config.json, read by the family parsers';
COMMENT ON COLUMN model.model_id IS 'Key: the Hub''s repository id, or the private model''s; source: Hub';
COMMENT ON COLUMN model.revision IS 'Commit of the repository the config comes from; source: Hub';
COMMENT ON COLUMN model.family IS 'Family parser that read the config; source: fitmart.estimator.architectures';
COMMENT ON COLUMN model.architecture IS 'Class name under architectures; source: config.json';
COMMENT ON COLUMN model.model_type IS 'model_type of the (text) config; source: config.json';
COMMENT ON COLUMN model.task IS 'text-generation, image-text-to-text, feature-extraction, …; source: Hub or config.json';
COMMENT ON COLUMN model.params_total IS 'Parameters the model''s class holds in memory, tied embeddings once, MTP apart [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.params_active IS 'Parameters one token touches: routed experts × k / n [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.params_embedding IS 'Parameters of the token embedding [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.params_lm_head IS 'Parameters of an untied output head [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.params_vision IS 'Parameters of vision and audio towers [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.params_mtp IS 'Parameters of multi-token-prediction layers [count]; source: sum over model_tensor';
COMMENT ON COLUMN model.stored_params IS 'Elements the checkpoint holds before packing, MTP and stored tied heads included [count]; source: headers, else sum over model_tensor';
COMMENT ON COLUMN model.stored_bytes IS 'All tensors as stored, scales included; null where no header was read [bytes]; source: headers';
COMMENT ON COLUMN model.layers IS 'Transformer layers, MTP apart [count]; source: config.json';
COMMENT ON COLUMN model.hidden_size IS 'Width of the residual stream [elements]; source: config.json';
COMMENT ON COLUMN model.attention_heads IS 'Query heads [count]; source: config.json';
COMMENT ON COLUMN model.kv_heads IS 'Key/value heads [count]; source: config.json';
COMMENT ON COLUMN model.head_dim IS 'Width of one head [elements]; source: config.json';
COMMENT ON COLUMN model.intermediate_size IS 'Inner width of a dense MLP [elements]; source: config.json';
COMMENT ON COLUMN model.vocab_size IS 'Rows of the embedding [tokens]; source: config.json';
COMMENT ON COLUMN model.experts IS 'Routed experts of a MoE layer [count]; source: config.json';
COMMENT ON COLUMN model.experts_per_token IS 'Routed experts one token uses [count]; source: config.json';
COMMENT ON COLUMN model.attention_kind IS 'mha, gqa, mqa, mla, hybrid or none; source: config.json';
COMMENT ON COLUMN model.max_context_tokens IS 'Context the model is configured for [tokens]; source: config.json';
COMMENT ON COLUMN model.extended_context_tokens IS 'Context with its documented scaling (YaRN and the like) [tokens]; source: config.json';
COMMENT ON COLUMN model.native_precision IS 'Precision id of the repository as stored; source: config.json';
COMMENT ON COLUMN model.quant_method IS 'quantization_config.quant_method; source: config.json';
COMMENT ON COLUMN model.license IS 'License of the weights; source: Hub';
COMMENT ON COLUMN model.is_gated IS 'Whether the Hub asks for an agreement first; source: Hub';
COMMENT ON COLUMN model.downloads IS 'Downloads of the last 30 days [count]; source: Hub';
COMMENT ON COLUMN model.likes IS 'Likes [count]; source: Hub';
COMMENT ON COLUMN model.released_on IS 'Day the repository was made; source: Hub';
COMMENT ON COLUMN model.base_model IS 'Model it was made from; source: Hub model card';
COMMENT ON COLUMN model.source_id IS 'Where the config came from; source: source';
COMMENT ON COLUMN model.observed_at IS 'When that was seen (UTC); source: landing';
COMMENT ON COLUMN model.expert_intermediate_size IS 'Inner width of one routed expert [elements]; source: config.json';
COMMENT ON COLUMN model.shared_expert_intermediate_size IS 'Inner width of the shared expert [elements]; source: config.json';
COMMENT ON COLUMN model.moe_layers IS 'Layers with routed experts [count]; source: config.json';
COMMENT ON COLUMN model.q_lora_rank IS 'MLA: width of the query latent [elements]; source: config.json';
COMMENT ON COLUMN model.kv_lora_rank IS 'MLA: width of the KV latent [elements]; source: config.json';
COMMENT ON COLUMN model.native_dtype IS 'bf16, fp16 or fp32: of what is not quantized; source: config.json';
COMMENT ON COLUMN model.kv_cache_scheme IS 'fp8 where the checkpoint carries scales for an 8-bit KV cache; source: config.json';
COMMENT ON COLUMN model.is_tied IS 'Whether embedding and output head are one matrix; source: config.json';
COMMENT ON COLUMN model.is_multimodal IS 'Whether it also reads images or sound; source: config.json';
COMMENT ON COLUMN model.is_encoder IS 'Whether it keeps no KV cache; source: config.json';
COMMENT ON COLUMN model.mtp_layers IS 'Multi-token-prediction layers [count]; source: config.json';
COMMENT ON COLUMN model.anatomy_basis IS 'header, config or assumed (unknown model_type read as a plain decoder); source: fitmart.estimator.architectures';

CREATE TABLE model_history (
    model_id VARCHAR NOT NULL,
    revision VARCHAR,
    valid_from TIMESTAMP NOT NULL,
    valid_to TIMESTAMP,
    params_total BIGINT,
    stored_bytes BIGINT,
    max_context_tokens BIGINT,
    source_id VARCHAR NOT NULL
);
COMMENT ON TABLE model_history IS 'One row per model and revision, with the time it was the newest; source: landing';
COMMENT ON COLUMN model_history.model_id IS 'The Hub''s repository id; source: Hub';
COMMENT ON COLUMN model_history.revision IS 'Commit of the repository; source: Hub';
COMMENT ON COLUMN model_history.valid_from IS 'When this revision was first seen (UTC); source: landing';
COMMENT ON COLUMN model_history.valid_to IS 'When another took its place; null: current (UTC); source: landing';
COMMENT ON COLUMN model_history.params_total IS 'Parameters in memory at that revision [count]; source: sum over its tensors';
COMMENT ON COLUMN model_history.stored_bytes IS 'Size of the weight files at that revision [bytes]; source: Hub file listing';
COMMENT ON COLUMN model_history.max_context_tokens IS 'Configured context at that revision [tokens]; source: config.json';
COMMENT ON COLUMN model_history.source_id IS 'Where it was seen; source: source';

CREATE TABLE model_tensor (
    model_id model_id NOT NULL,
    component VARCHAR NOT NULL,
    tensor VARCHAR NOT NULL,
    layer_count BIGINT NOT NULL,
    layer_ids INTEGER[],
    rows BIGINT NOT NULL,
    columns BIGINT NOT NULL,
    params BIGINT NOT NULL,
    tp_axis VARCHAR,
    copies BIGINT,
    tp_max_shards BIGINT,
    is_in_memory BOOLEAN,
    is_stored BOOLEAN,
    stored_format VARCHAR
);
COMMENT ON TABLE model_tensor IS 'One row per model and weight pattern (equal tensors of all layers together); source: safetensors or GGUF headers, else config.json';
COMMENT ON COLUMN model_tensor.model_id IS 'Model; source: model';
COMMENT ON COLUMN model_tensor.component IS 'embedding, attention, mlp, experts, router, norm, lm_head, vision, audio or mtp; source: family parser';
COMMENT ON COLUMN model_tensor.tensor IS 'The checkpoint''s name with {layer} and {expert} for indexes; source: header or family parser';
COMMENT ON COLUMN model_tensor.layer_count IS 'Layers that have it; 1 outside the layers [count]; source: config.json';
COMMENT ON COLUMN model_tensor.layer_ids IS 'Which layers; empty: exists once, outside the layers; source: config.json';
COMMENT ON COLUMN model_tensor.rows IS 'Output features [elements]; source: header or config.json';
COMMENT ON COLUMN model_tensor.columns IS 'Input features, along which quantization groups run [elements]; source: header or config.json';
COMMENT ON COLUMN model_tensor.params IS 'rows × columns × layer_count × copies [count]; source: product';
COMMENT ON COLUMN model_tensor.tp_axis IS 'How tensor parallelism cuts it: rows, columns or replicated; source: family parser';
COMMENT ON COLUMN model_tensor.copies IS 'Equal tensors a layer (experts) [count]; source: config.json';
COMMENT ON COLUMN model_tensor.tp_max_shards IS 'No more shards than this (KV heads); null: no limit [count]; source: config.json';
COMMENT ON COLUMN model_tensor.is_in_memory IS 'Whether the engine loads it; source: family parser';
COMMENT ON COLUMN model_tensor.is_stored IS 'Whether the checkpoint holds it; source: family parser';
COMMENT ON COLUMN model_tensor.stored_format IS 'Format in the checkpoint; null: the native dtype; source: header or quantization_config';

CREATE TABLE model_cache (
    model_id model_id NOT NULL,
    kind VARCHAR NOT NULL,
    layer_count BIGINT NOT NULL,
    window_tokens BIGINT,
    elements_per_token BIGINT NOT NULL,
    fixed_elements BIGINT NOT NULL,
    layer_ids INTEGER[],
    tokens_per_entry BIGINT,
    kv_heads BIGINT,
    key_dim BIGINT,
    value_dim BIGINT,
    state_heads BIGINT,
    state_key_dim BIGINT,
    state_value_dim BIGINT,
    state_element_bytes BIGINT,
    conv_channels BIGINT,
    conv_kernel BIGINT
);
COMMENT ON TABLE model_cache IS 'One row per model and kind of cache; bytes of one sequence follow from it; source: config.json, read by the family parsers';
COMMENT ON COLUMN model_cache.model_id IS 'Model; source: model';
COMMENT ON COLUMN model_cache.kind IS 'full, sliding, chunked, mla, linear_state, conv_state, cross or indexer; source: family parser';
COMMENT ON COLUMN model_cache.layer_count IS 'Layers with this cache [count]; source: config.json';
COMMENT ON COLUMN model_cache.window_tokens IS 'Tokens a layer keeps at most; null: all [tokens]; source: config.json';
COMMENT ON COLUMN model_cache.elements_per_token IS 'Elements a token adds in one layer, K and V together [elements]; source: config.json';
COMMENT ON COLUMN model_cache.fixed_elements IS 'Elements a layer keeps whatever the context (states) [elements]; source: config.json';
COMMENT ON COLUMN model_cache.layer_ids IS 'Which layers; source: config.json';
COMMENT ON COLUMN model_cache.tokens_per_entry IS 'Tokens that share one entry (compressed attention) [tokens]; source: config.json';
COMMENT ON COLUMN model_cache.kv_heads IS 'Heads that tensor parallelism divides; 0 for latents and states [count]; source: config.json';
COMMENT ON COLUMN model_cache.key_dim IS 'Width of one key [elements]; source: config.json';
COMMENT ON COLUMN model_cache.value_dim IS 'Width of one value; 0 for latents [elements]; source: config.json';
COMMENT ON COLUMN model_cache.state_heads IS 'Heads of a recurrent state [count]; source: config.json';
COMMENT ON COLUMN model_cache.state_key_dim IS 'Key width of a recurrent state [elements]; source: config.json';
COMMENT ON COLUMN model_cache.state_value_dim IS 'Value width of a recurrent state [elements]; source: config.json';
COMMENT ON COLUMN model_cache.state_element_bytes IS 'Bytes an engine keeps of one element of a recurrent state [bytes]; source: config.json';
COMMENT ON COLUMN model_cache.conv_channels IS 'Channels of a convolution state [count]; source: config.json';
COMMENT ON COLUMN model_cache.conv_kernel IS 'Width of the convolution [tokens]; source: config.json';

CREATE TABLE config_field (
    model_id model_id NOT NULL,
    field VARCHAR NOT NULL,
    field_value VARCHAR,
    meaning VARCHAR,
    effect VARCHAR
);
COMMENT ON TABLE config_field IS 'One row per model and field of its config that the estimator reads, with what it means; source: config.json';
COMMENT ON COLUMN config_field.model_id IS 'Model; source: model';
COMMENT ON COLUMN config_field.field IS 'Path of the field, text_config.num_hidden_layers; source: config.json';
COMMENT ON COLUMN config_field.field_value IS 'Value as JSON; source: config.json';
COMMENT ON COLUMN config_field.meaning IS 'What the field says, in words; source: fitmart.estimator.architectures';
COMMENT ON COLUMN config_field.effect IS 'What it does to memory, in words; source: fitmart.estimator.architectures';

CREATE TABLE model_check (
    model_id VARCHAR NOT NULL,
    check_name VARCHAR NOT NULL,
    config_value BIGINT,
    header_value BIGINT,
    is_equal BOOLEAN NOT NULL,
    explanation VARCHAR,
    source_id VARCHAR,
    observed_at TIMESTAMP
);
COMMENT ON TABLE model_check IS 'One row per model whose headers were read and figure that its config gives as well; source: headers against config.json';
COMMENT ON COLUMN model_check.model_id IS 'Model; source: model';
COMMENT ON COLUMN model_check.check_name IS 'What was compared (params_total, stored_bytes, params.<component>, …); source: fitmart.estimator.model_check';
COMMENT ON COLUMN model_check.config_value IS 'Figure that follows from the config [count or bytes]; source: config.json';
COMMENT ON COLUMN model_check.header_value IS 'Figure of the files, which the catalog uses [count or bytes]; source: headers';
COMMENT ON COLUMN model_check.is_equal IS 'Whether both agree (bytes: within a thousandth); source: fitmart.estimator.model_check';
COMMENT ON COLUMN model_check.explanation IS 'Where the difference comes from, one line; null: there is none; source: fitmart.estimator.model_check';
COMMENT ON COLUMN model_check.source_id IS 'Where config and headers come from; source: source';
COMMENT ON COLUMN model_check.observed_at IS 'When it was seen (UTC); source: landing';
