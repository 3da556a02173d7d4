"""Our learner as devices that share nothing but messages: what peers run, and what the compiled learner is held against."""
