"""Infrastructure faults and crash points in random order, from a printed seed: `python -m tests.chaos`."""
