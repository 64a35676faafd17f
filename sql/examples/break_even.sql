-- Above how many output tokens a day does the cheapest configuration cost less than each API?
FROM break_even('Qwen/Qwen2.5-72B-Instruct');
