"""Drills: a sink's fence proved by driving its own connector in a namespace that is made for it and taken away."""
