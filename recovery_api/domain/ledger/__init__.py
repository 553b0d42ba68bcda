"""The ledger: what was once seen of a pipeline is remembered, and decides (THEORY section 6, Corollary 7.1).

The law: knowledge is added, never dropped silently. An event once found owed is owed until it is accepted or a person
decides; an acceptance once seen committed stays justified; what nobody saw before it went is *unknown*.
"""
