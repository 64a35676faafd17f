-- Where does each figure come from, and how old was it?
FROM provenance('Qwen/Qwen2.5-72B-Instruct');
