-- What auditors and recoverers read: the tables themselves, and these.

-- The truth every other memory is compared with. last_entry is the newest number drawn: a restored record is behind it.
CREATE FUNCTION {schema}.state(
    OUT counter bigint, OUT fence bigint, OUT open_claim jsonb, OUT identity text, OUT last_entry bigint,
    OUT facts jsonb
) LANGUAGE sql STABLE SECURITY DEFINER {pinned} AS $$
    SELECT c.allocated, p.fence,
        (SELECT to_jsonb(o) FROM {schema}.claim o WHERE o.state = 'open'),
        f.system_identifier || ':' || f.database || ':' || f.timeline || ':' || p.identity,
        pg_sequence_last_value(pg_get_serial_sequence({accepted_text}, 'entry')::regclass),
        jsonb_build_object(
            'system_identifier', f.system_identifier, 'database', f.database, 'timeline', f.timeline,
            'kit', p.identity, 'kit_version', p.kit_version, 'effect', p.effect, 'batch_limit', p.batch_limit, 'lanes', p.lanes,
            'is_replica', pg_is_in_recovery(), 'server_version', current_setting('server_version'))
    FROM {schema}.standing p, {schema}.counter c, (
        SELECT (SELECT s.system_identifier::text FROM pg_control_system() s) AS system_identifier,
               (SELECT d.oid::text FROM pg_database d WHERE d.datname = current_database()) AS database,
               CASE WHEN pg_is_in_recovery() THEN (SELECT k.timeline_id FROM pg_control_checkpoint() k)
                    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
               END::text AS timeline) f
$$;
