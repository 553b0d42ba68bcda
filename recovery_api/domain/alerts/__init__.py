"""Alerts: what somebody must be told of, opened by evidence and resolved by evidence.

The law: an alert is a pure function of what was stored of it and of what is observed now; no clock, no sending. What was
not observed changes nothing: silence neither opens an alert nor resolves one.
"""
