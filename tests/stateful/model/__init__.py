"""An executable model of the merged machine: wire, relay runs and restarts, recoverers, claims, fires, hand-overs.

The paper proves its two fences on two machines and says that no theorem merges them; the product runs both at once,
with deaths in between. So the merged machine is explored here, state by state: every interleaving of a small number of
events, relay starts and recoverers. What decides is the product's own: the sink's answers, the settlement of a claim,
a recoverer's next step, the approval, the hand-over and the outcome all come from recovery_api.domain, which the workers
ask, too. The model adds only what moves between those decisions, one step at a time.

`make explore` explores the larger sizes; docs/reliability.md says what was seen and what is not covered.
"""
