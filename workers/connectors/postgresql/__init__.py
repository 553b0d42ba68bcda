"""What the PostgreSQL kinds share: connections, names, the canonical form in SQL, packed reads."""
