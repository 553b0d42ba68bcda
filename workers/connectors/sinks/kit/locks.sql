-- The locks. Who delivers, arms, fires or settles holds `lock` in ROW SHARE mode, who claims or raises the fence holds it in
-- EXCLUSIVE mode, until the transaction ends: never a session's lock, so a transaction pooler changes nothing. Its queue
-- is fair, which a row lock's is not: sharers that come later do not overtake a claim that waits. The two modes pass by a
-- dump, which reads every table. Who draws a number holds `counter` in EXCLUSIVE mode, before the other lock where it
-- takes both, so that nobody waits for a number while deliveries wait behind. Both tables are locked by their owner alone.

-- Who may be waited for at this table, null: at any that is not the kit's own: every session and prepared transaction
-- that holds it, or a row of it, for more than reading, or is ahead in its queue.
CREATE FUNCTION {schema}.lock_holders(held oid DEFAULT {lock_text}::pg_catalog.regclass) RETURNS jsonb
LANGUAGE sql STABLE {pinned} AS $$
    SELECT coalesce(jsonb_agg(w.waited ORDER BY w.granted DESC, w.started_at), '[]'::jsonb) FROM (
        SELECT DISTINCT ON (l.virtualtransaction) l.granted, coalesce(a.xact_start, p.prepared) AS started_at,
            jsonb_strip_nulls(jsonb_build_object(
                'pid', l.pid, 'prepared_transaction', p.gid, 'application', nullif(a.application_name, ''),
                'role', coalesce(a.usename, p.owner), 'state', a.state, 'since', a.state_change,
                'transaction_start', coalesce(a.xact_start, p.prepared), 'query_start', a.query_start,
                'is_waiting', NOT l.granted)) AS waited
        FROM pg_locks l
        JOIN pg_class c ON c.oid = l.relation
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
            AND x.mode = 'ExclusiveLock' AND x.virtualtransaction = l.virtualtransaction
        LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
        WHERE l.locktype = 'relation'
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            AND (l.relation = held OR held IS NULL AND c.relkind = 'r' AND c.relnamespace NOT IN (
                SELECT n.oid FROM pg_namespace n WHERE n.nspname IN ({schema_text}, 'pg_catalog')))
            AND (l.granted AND l.mode <> 'AccessShareLock' OR l.mode = 'ExclusiveLock')
            AND l.pid IS DISTINCT FROM pg_backend_pid()
        ORDER BY l.virtualtransaction, l.granted DESC) w
$$;

-- Null when the lock was taken, else whom it waited for in vain. Whatever is asked for, the wait has an upper bound here;
-- the caller's lock_timeout is left as it was.
CREATE FUNCTION {schema}.lock_take(what text, wait_seconds double precision) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', {schema}.wait_held(wait_seconds), true);
    CASE what
        WHEN 'shared' THEN LOCK TABLE {schema}.lock IN ROW SHARE MODE;
        WHEN 'alone' THEN LOCK TABLE {schema}.lock IN EXCLUSIVE MODE;
        WHEN 'counter' THEN LOCK TABLE {schema}.counter IN EXCLUSIVE MODE;
    END CASE;
    PERFORM set_config('lock_timeout', was, true);
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    RETURN {schema}.lock_holders(CASE what WHEN 'counter' THEN {counter_text} ELSE {lock_text} END::regclass);
END
$$;

-- A wait as lock_timeout takes it: at least a millisecond, at most what every wait at this sink is bounded by.
CREATE FUNCTION {schema}.wait_held(wait_seconds double precision) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(1, (least(wait_seconds, {most_wait_seconds}) * 1000)::bigint)::text
$$;

-- What every step needs of its transaction. An older snapshot would not see the fence that a claim has raised meanwhile;
-- and what is answered must outlast a crash of the server, so a lower synchronous_commit is raised until the transaction
-- ends. (As a SET clause it would be undone before the commit.) Who lowers it again afterwards is met by the reader, who
-- waits until what it has read is flushed.
CREATE FUNCTION {schema}.transaction_check() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
            MESSAGE = format('this transaction is %s: its snapshot may be older than the fence',
                             upper(current_setting('transaction_isolation'))),
            HINT = 'Call this function in a READ COMMITTED transaction.';
    END IF;
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

-- Whether this login may act under the generation: allocated here, and to this login.
CREATE FUNCTION {schema}.is_allocated(generation bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM {schema}.generation g
                   WHERE g.number = is_allocated.generation AND (g.asked_by IS NULL OR g.asked_by = session_user))
$$;

-- Raises the fence, whose lock the caller holds alone: what stood below is superseded.
CREATE FUNCTION {schema}.fence_raise(generation bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE {schema}.standing p SET fence = g.number, fence_purpose = g.purpose, fence_asked_by = g.asked_by
        FROM {schema}.generation g WHERE g.number = fence_raise.generation AND p.fence < g.number;
    UPDATE {schema}.claim c
        SET state = 'superseded', superseded_by = fence_raise.generation, superseded_at = clock_timestamp()
        WHERE c.state = 'open' AND c.generation < fence_raise.generation;
    UPDATE {schema}.generation g
        SET superseded_by = fence_raise.generation, superseded_at = clock_timestamp()
        WHERE g.number < fence_raise.generation AND g.superseded_at IS NULL;
    UPDATE {schema}.generation g SET begun_at = clock_timestamp()
        WHERE g.number = fence_raise.generation AND g.begun_at IS NULL;
END
$$;
