"""What energy is spent for, without the compiler: experiments are also listed."""

BEFORE = ("partition", "discovery", "datapoints")
TRAINING = ("models up", "models down", "models between")
PURPOSES = BEFORE + TRAINING
