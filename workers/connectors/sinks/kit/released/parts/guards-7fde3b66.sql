-- Guards: the record only grows, the fence and the counter only rise. ALWAYS: a session in replica role is guarded too.
CREATE FUNCTION {schema}.append_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
        MESSAGE = format('%I.%I is append-only: %s is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP),
        HINT = 'An acceptance record that forgets makes every verdict about it wrong.';
END
$$;

CREATE FUNCTION {schema}.only_rises() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR (to_jsonb(NEW) -> TG_ARGV[0])::bigint < (to_jsonb(OLD) -> TG_ARGV[0])::bigint THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('the %s of %I only rises: %s is refused', TG_ARGV[0], TG_TABLE_SCHEMA, TG_OP);
    END IF;
    RETURN NEW;
END
$$;

-- A row and a statement trigger: the first follows into partitions, the second meets what matches no row.
CREATE TRIGGER rows_stay BEFORE UPDATE OR DELETE ON {schema}.accepted
    FOR EACH ROW EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER record_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.accepted
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER fence_only_rises BEFORE UPDATE OR DELETE ON {schema}.standing
    FOR EACH ROW EXECUTE FUNCTION {schema}.only_rises('fence');
CREATE TRIGGER fence_stays BEFORE TRUNCATE ON {schema}.standing
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER counter_only_rises BEFORE UPDATE OR DELETE ON {schema}.counter
    FOR EACH ROW EXECUTE FUNCTION {schema}.only_rises('allocated');
CREATE TRIGGER counter_stays BEFORE TRUNCATE ON {schema}.counter
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER numbers_stay BEFORE DELETE OR TRUNCATE ON {schema}.generation
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER claims_stay BEFORE DELETE OR TRUNCATE ON {schema}.claim
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.append_only();
ALTER TABLE {schema}.accepted ENABLE ALWAYS TRIGGER rows_stay;
ALTER TABLE {schema}.accepted ENABLE ALWAYS TRIGGER record_stays;
ALTER TABLE {schema}.standing ENABLE ALWAYS TRIGGER fence_only_rises;
ALTER TABLE {schema}.standing ENABLE ALWAYS TRIGGER fence_stays;
ALTER TABLE {schema}.counter ENABLE ALWAYS TRIGGER counter_only_rises;
ALTER TABLE {schema}.counter ENABLE ALWAYS TRIGGER counter_stays;
ALTER TABLE {schema}.generation ENABLE ALWAYS TRIGGER numbers_stay;
ALTER TABLE {schema}.claim ENABLE ALWAYS TRIGGER claims_stay;

-- Every path into the record or the mapped target that does not go through admission: who, by which way, in a sentence.
-- What cannot be closed (a superuser) is named.
CREATE FUNCTION {schema}.undisciplined_paths(OUT path text, OUT role name, OUT says text) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
    WITH guarded AS (
        SELECT c.oid, c.relowner, n.nspname, c.relname, c.oid = {target_regclass} AS is_target
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = {target_regclass}
            OR (n.nspname = {schema_text} AND c.relname IN ('accepted', 'standing', 'lock', 'counter', 'generation', 'claim',
                                                            'staged', 'applied', 'hand_over', 'altered'))
    ), granted AS (
        SELECT g.nspname, g.relname, g.is_target, g.relowner, x.grantee, string_agg(x.privilege_type, ', ') AS privileges
        FROM guarded g
        JOIN pg_class c ON c.oid = g.oid,
        LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
        WHERE x.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
        GROUP BY 1, 2, 3, 4, 5
        UNION ALL
        SELECT g.nspname, g.relname, g.is_target, g.relowner, x.grantee,
               string_agg(x.privilege_type || ' (' || a.attname || ')', ', ')
        FROM guarded g JOIN pg_attribute a ON a.attrelid = g.oid AND a.attacl IS NOT NULL,
        LATERAL aclexplode(a.attacl) x
        WHERE x.privilege_type IN ('INSERT', 'UPDATE')
        GROUP BY 1, 2, 3, 4, 5
    )
    SELECT 'superuser', r.rolname, format('%I is a superuser: it can write anywhere', r.rolname)
        FROM pg_roles r WHERE r.rolsuper
    UNION ALL
    SELECT 'owner', r.rolname, format('%I can log in and owns the kit', r.rolname)
        FROM pg_roles r WHERE r.rolname = {owner_text} AND r.rolcanlogin
    UNION ALL
    SELECT 'owner', m.rolname, format('%I can become the owner %I', m.rolname, {owner_text})
        FROM pg_roles m WHERE NOT m.rolsuper AND m.rolname <> {owner_text} AND pg_has_role(m.oid, {owner_text}, 'MEMBER')
    UNION ALL
    SELECT 'owner', pg_get_userbyid(g.relowner), format('%I.%I belongs to %I, not to %I', g.nspname, g.relname,
                                                        pg_get_userbyid(g.relowner), {owner_text})
        FROM guarded g WHERE NOT g.is_target AND pg_get_userbyid(g.relowner) <> {owner_text}
    UNION ALL
    SELECT CASE WHEN grantee = relowner THEN 'target owner' ELSE 'privilege' END,
           CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END,
           format('%s holds %s on %I.%I', CASE WHEN grantee = 0 THEN 'everybody' ELSE pg_get_userbyid(grantee) END,
                  privileges, nspname, relname)
        FROM granted
        WHERE (grantee = 0 OR pg_get_userbyid(grantee) <> {owner_text})
            AND (is_target OR grantee <> relowner)
            AND NOT (relname = 'staged' AND privileges = 'INSERT' AND grantee <> 0
                     AND pg_get_userbyid(grantee) = {recoverer_text})
    UNION ALL
    SELECT 'privilege', m.rolname, format('%I may write every table (pg_write_all_data)', m.rolname)
        FROM pg_roles m
        WHERE NOT m.rolsuper AND m.rolname <> 'pg_write_all_data' AND pg_has_role(m.oid, 'pg_write_all_data', 'MEMBER')
    UNION ALL
    SELECT 'guard', NULL, format('trigger %s of %I.%I is %s', w.name, {schema_text}, w.relname,
                                 CASE WHEN t.oid IS NULL THEN 'missing' WHEN t.tgenabled = 'D' THEN 'disabled'
                                      ELSE 'passed over by a session in replica role' END)
        FROM (VALUES ('rows_stay', 'accepted'), ('record_stays', 'accepted'), ('fence_only_rises', 'standing'),
                     ('fence_stays', 'standing'), ('counter_only_rises', 'counter'), ('counter_stays', 'counter'),
                     ('numbers_stay', 'generation'), ('claims_stay', 'claim')) AS w (name, relname)
        JOIN guarded g ON g.nspname = {schema_text} AND g.relname = w.relname AND NOT g.is_target
        LEFT JOIN pg_trigger t ON t.tgrelid = g.oid AND t.tgname = w.name
        WHERE t.oid IS NULL OR t.tgenabled <> 'A'
    UNION ALL
    SELECT 'subscription', NULL, format('a logical subscription writes to %I.%I', g.nspname, g.relname)
        FROM guarded g JOIN pg_subscription_rel s ON s.srrelid = g.oid
    UNION ALL
    SELECT 'partition', NULL, format('%s is a part of %I.%I with rights of its own', i.inhrelid::regclass, g.nspname,
                                     g.relname)
        FROM guarded g JOIN pg_inherits i ON i.inhparent = g.oid
    UNION ALL
    SELECT 'replica role', r.rolname, format('%I may set session_replication_role: of the target''s own triggers only '
                                             'those enabled ALWAYS meet it', r.rolname)
        FROM pg_roles r
        WHERE NOT r.rolsuper AND has_parameter_privilege(r.oid, 'session_replication_role', 'SET')
    ORDER BY 1, 2
$$;
