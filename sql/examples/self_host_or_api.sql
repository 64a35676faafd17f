-- Above how many tokens a day is renting cheaper than an API, and can it serve that many?
FROM self_host_or_api('Qwen/Qwen2.5-72B-Instruct');
