-- Roles. An owner that nobody logs in as, and one group for each trade: relays deliver, recoverers claim and fire,
-- auditors read. Grant a login one of the groups, never the owner.
DO $roles$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[{owner_text}, {relay_text}, {recoverer_text}, {auditor_text}] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = name) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', name);
        END IF;
    END LOOP;
    IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
        EXECUTE pg_catalog.format('GRANT %I TO CURRENT_USER', {owner_text});
    END IF;
    BEGIN
        -- so that a claim that waits can say since when the session it waits for has been idle
        EXECUTE pg_catalog.format('GRANT pg_read_all_stats TO %I', {owner_text});
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE NOTICE 'pg_read_all_stats is not granted to %: whom a claim waits for is named without its state',
            {owner_text};
    END;
END
$roles$;
