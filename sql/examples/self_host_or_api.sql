-- Above how many output tokens a day is renting cheaper than an API?
FROM break_even('Qwen/Qwen2.5-72B-Instruct');
