-- The lock. Who delivers, arms, fires or settles holds it shared, who claims or raises the fence holds it alone, until
-- the transaction ends: never a session's lock, so a transaction pooler changes nothing. Its queue is fair, which a row
-- lock's is not: sharers that come later do not overtake a claim that waits.

-- Whom a waiter waits for: every session and prepared transaction that holds the lock or is ahead in its queue.
CREATE FUNCTION {schema}.lock_holders() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'pid', l.pid, 'prepared_transaction', p.gid, 'application', nullif(a.application_name, ''),
        'role', coalesce(a.usename, p.owner), 'state', a.state, 'since', a.state_change,
        'transaction_start', coalesce(a.xact_start, p.prepared), 'query_start', a.query_start,
        'is_waiting', NOT l.granted)) ORDER BY l.granted DESC, coalesce(a.xact_start, p.prepared)), '[]'::jsonb)
    FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction
    WHERE l.locktype = 'advisory' AND l.objsubid = 1
        AND (l.classid::bigint << 32 | l.objid::bigint) = {lock_key}
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND (l.granted OR l.mode = 'ExclusiveLock')
        AND l.pid IS DISTINCT FROM pg_backend_pid()
$$;

-- Null when the lock was taken, else whom it waited for in vain. The caller's lock_timeout is left as it was.
CREATE FUNCTION {schema}.lock_take(is_alone boolean, wait_seconds double precision) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', greatest(1, (wait_seconds * 1000)::bigint)::text, true);
    IF is_alone THEN
        PERFORM pg_advisory_xact_lock({lock_key});
    ELSE
        PERFORM pg_advisory_xact_lock_shared({lock_key});
    END IF;
    PERFORM set_config('lock_timeout', was, true);
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    RETURN {schema}.lock_holders();
END
$$;

-- An older snapshot would not see the fence that a claim has raised meanwhile.
CREATE FUNCTION {schema}.isolation_check() RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
            MESSAGE = format('this transaction is %s: its snapshot may be older than the fence',
                             upper(current_setting('transaction_isolation'))),
            HINT = 'Call this function in a READ COMMITTED transaction.';
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
    UPDATE {schema}.protocol p SET fence = fence_raise.generation WHERE p.fence < fence_raise.generation;
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
