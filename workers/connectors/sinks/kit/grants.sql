-- Grants: each trade gets its own steps and nothing else.
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA {schema} FROM PUBLIC;
GRANT USAGE ON SCHEMA {schema} TO {relay}, {recoverer}, {auditor};

GRANT EXECUTE ON FUNCTION {schema}.relay_start(text, double precision),
    {schema}.generation_allocate(text, text),
    {schema}.begin(bigint, double precision),
    {schema}.deliver(bigint, text, bigint, bigint, text, text, text, jsonb, bigint, bigint),
    {schema}.deliver_many(bigint, jsonb),
    {schema}.held(pg_lsn), {schema}.held(xid8), {schema}.lock_holders(oid)
    TO {relay};

GRANT EXECUTE ON FUNCTION {schema}.generation_allocate(text, text),
    {schema}.claim_find(text, double precision),
    {schema}.claim_open(text, jsonb, bigint, double precision),
    {schema}.claim(bigint, jsonb, double precision),
    {schema}.arm(bigint, bigint, text, jsonb, double precision),
    {schema}.fire(bigint, bigint, jsonb, double precision),
    {schema}.release(bigint, text, double precision),
    {schema}.settle(bigint, double precision),
    {schema}.counter_raise(bigint), {schema}.lanes_tell(text[]), {schema}.staged_purge(bigint),
    {schema}.payload_digest(text, text, jsonb),
    {schema}.entry_digest(text, bigint, bigint, text, text, jsonb)
    TO {recoverer};
GRANT INSERT ON {schema}.staged TO {recoverer};

GRANT EXECUTE ON FUNCTION {schema}.state(), {schema}.undisciplined_paths(), {schema}.lock_holders(oid)
    TO {recoverer}, {auditor};
GRANT SELECT ON {schema}.accepted, {schema}.altered, {schema}.standing, {schema}.counter, {schema}.generation,
    {schema}.claim, {schema}.hand_over, {schema}.applied
    TO {recoverer}, {auditor};
RESET ROLE;

DO $closing$
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
        EXECUTE pg_catalog.format('REVOKE %I FROM CURRENT_USER', {owner_text});
    END IF;
END
$closing$;
