"""Graph discovery: links, messages, rewards, learners, baselines and the reference optimum."""
