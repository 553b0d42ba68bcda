"""Random histories on real PostgreSQL, audited incrementally and in full after each step, beside what was generated."""
