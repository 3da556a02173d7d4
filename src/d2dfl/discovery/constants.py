"""Numbers that our learner goes by, compiled or as devices of their own: written once, and loading neither NumPy nor a compiler."""

LEARNER = "marginal"  # its name as a method and of its random stream, so that peers find the graph of `discover`
SLIGHT = 1e-10  # improvements below this are rounding
SAME = 1e-12  # amounts and shares that differ by less are the same
PRICED = 0.1  # share of what a link brings by which its worth to the receiver is measured
TURN = 2  # messages that bring the right to revise to the next device, and its answer
LEAST_MOVE = 4  # messages of the cheapest move there and back
ASKED = 8  # transmitters that a device asks at most in one revision
REHEAT = 0.5  # of the first temperature, with which later cycles begin
ALONE = 0.9  # share of a device's datapoints from which a label counts as its only one
