-- What does each field of its config mean?
FROM annotated_config('Qwen/Qwen2.5-72B-Instruct');
