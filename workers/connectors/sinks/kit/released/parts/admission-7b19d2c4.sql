-- Admission: the one way by which a relay's delivery enters the record.

-- 'admitted', or the word that refuses. Tested in the order of the protocol: fenced, unallocated, paused.
CREATE FUNCTION {schema}.admit(generation bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    fence_now bigint;
    busy jsonb;
BEGIN
    PERFORM {schema}.isolation_check();
    SELECT p.fence INTO STRICT fence_now FROM {schema}.protocol p;
    IF generation < fence_now THEN
        RETURN 'fenced';  -- for good, since the fence never sinks: a straggler need not wait for anybody
    END IF;
    IF NOT {schema}.is_allocated(generation) THEN
        RETURN 'unallocated';
    END IF;
    -- Which lock is decided before one is taken: turning a shared one into the other kind deadlocks.
    IF generation > fence_now THEN
        IF EXISTS (SELECT FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory'
                   AND l.mode = 'ShareLock' AND l.objsubid = 1
                   AND (l.classid::bigint << 32 | l.objid::bigint) = {lock_key}) THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
                MESSAGE = format('this transaction has delivered already, and generation %s would raise the fence',
                                 generation),
                HINT = 'Begin a generation in a transaction of its own.';
        END IF;
        busy := {schema}.lock_take(true, {lock_wait_seconds});
    ELSE
        PERFORM pg_advisory_xact_lock_shared({lock_key});
    END IF;
    IF busy IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = 'raising the fence waits for transactions that are inside the sink', DETAIL = busy::text;
    END IF;
    -- A later statement, so a newer snapshot; the row lock keeps the fence where it was seen.
    SELECT p.fence INTO STRICT fence_now FROM {schema}.protocol p FOR SHARE;
    IF generation < fence_now THEN
        RETURN 'fenced';
    ELSIF generation > fence_now THEN
        PERFORM {schema}.fence_raise(generation);
    ELSIF EXISTS (SELECT FROM {schema}.claim c WHERE c.generation = admit.generation AND c.state = 'open') THEN
        RETURN 'paused';
    END IF;
    RETURN 'admitted';
END
$$;

-- 'accepted' | 'absorbed' | 'altered' of one admitted event. The effect lands with the entry or not at all.
CREATE FUNCTION {schema}.accept(
    generation bigint, lane text, "position" bigint, ordinal bigint, event_id text, op text, key text, content jsonb,
    head_position bigint, head_ordinal bigint
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    offered bytea := {schema}.payload_digest(accept.op, accept.key, accept.content);
    held bytea;
BEGIN
    INSERT INTO {schema}.accepted AS a (lane, position, ordinal, generation, head_position, head_ordinal, accepted_at,
                                        admitted_in, payload_digest, op, event_id, key)
        VALUES (accept.lane, accept.position, accept.ordinal, accept.generation, accept.head_position,
                accept.head_ordinal, clock_timestamp(), pg_current_xact_id(), offered, accept.op, accept.event_id,
                accept.key)
        ON CONFLICT (lane, position, ordinal) DO NOTHING;
    IF FOUND THEN
        {effect_of_event}
        RETURN 'accepted';
    END IF;
    SELECT a.payload_digest INTO STRICT held FROM {schema}.accepted a
        WHERE a.lane = accept.lane AND a.position = accept.position AND a.ordinal = accept.ordinal;
    IF held = offered THEN
        RETURN 'absorbed';
    END IF;
    INSERT INTO {schema}.altered (lane, position, ordinal, offered_digest, accepted_digest, generation, op, event_id, key)
        VALUES (accept.lane, accept.position, accept.ordinal, offered, held, accept.generation, accept.op,
                accept.event_id, accept.key)
        ON CONFLICT DO NOTHING;
    RETURN 'altered';
END
$$;

-- One event: accepted | absorbed | altered | paused | fenced | unallocated. Counts when the transaction commits.
-- content null is absent content; 'null'::jsonb is null. head is the last source coordinate the relay knew durable.
CREATE FUNCTION {schema}.deliver(
    generation bigint, lane text, "position" bigint, ordinal bigint, event_id text, op text, key text, content jsonb,
    head_position bigint DEFAULT NULL, head_ordinal bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer text := {schema}.admit(generation);
BEGIN
    IF answer = 'admitted' THEN
        answer := {schema}.accept(generation, lane, deliver.position, ordinal, event_id, op, key, content,
                                  head_position, head_ordinal);
    END IF;
    RETURN answer;
END
$$;

-- Several events in this transaction, a word an event in their order. An event: {"lane": "0", "position": "17",
-- "ordinal": "0", "event_id": …, "op": "insert", "key": …, "content": …, "head_position": …, "head_ordinal": …};
-- a missing "content" is absent, a missing lane is '0', a missing ordinal 0.
CREATE FUNCTION {schema}.deliver_many(generation bigint, events jsonb) RETURNS text[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer text := {schema}.admit(generation);
    answers text[] := '{}';
    event jsonb;
BEGIN
    FOR event IN SELECT e.value FROM jsonb_array_elements(events) WITH ORDINALITY e ORDER BY e.ordinality LOOP
        answers := answers || CASE WHEN answer <> 'admitted' THEN answer ELSE
            {schema}.accept(generation, coalesce(event ->> 'lane', '0'), (event ->> 'position')::bigint,
                            coalesce((event ->> 'ordinal')::bigint, 0), event ->> 'event_id', event ->> 'op',
                            event ->> 'key', event -> 'content', (event ->> 'head_position')::bigint,
                            (event ->> 'head_ordinal')::bigint) END;
    END LOOP;
    RETURN answers;
END
$$;

-- A position as held: unsigned 64-bit, shifted by 2^63, so that bigint order is its order.
CREATE FUNCTION {schema}.held("position" pg_lsn) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ((held.position - '0/0'::pg_lsn) - 9223372036854775808)::bigint
$$;
CREATE FUNCTION {schema}.held("position" xid8) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (held.position::text::numeric - 9223372036854775808)::bigint
$$;
