-- Admission: the one way by which a relay's delivery enters the record.

-- 'admitted', or the word that refuses. Tested in the order of the protocol: fenced, unallocated, paused.
-- The common case, a delivery of the fence's own generation, is two reads of one row each and a shared lock.
CREATE FUNCTION {schema}.admit(generation bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    fence_now bigint;
    is_allocated boolean;
    is_recoverers boolean;
    busy jsonb;
BEGIN
    PERFORM {schema}.transaction_check();
    SELECT p.fence INTO STRICT fence_now FROM {schema}.standing p;
    IF generation < fence_now THEN
        RETURN 'fenced';  -- for good, since the fence never sinks: a straggler need not wait for anybody
    -- Which lock is decided before one is taken: turning a shared one into the other kind deadlocks.
    ELSIF generation = fence_now THEN
        LOCK TABLE {schema}.lock IN ROW SHARE MODE;
    ELSIF NOT {schema}.is_allocated(generation) THEN
        RETURN 'unallocated';
    ELSIF EXISTS (SELECT FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
                  AND l.mode = 'RowShareLock' AND l.relation = {lock_text}::regclass) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
            MESSAGE = format('this transaction has delivered already, and generation %s would raise the fence',
                             generation),
            HINT = 'Begin a generation in a transaction of its own.';
    ELSE
        busy := {schema}.lock_take('alone', {lock_wait_seconds});
        IF busy IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
                MESSAGE = 'raising the fence waits for transactions that are inside the sink', DETAIL = busy::text;
        END IF;
    END IF;
    -- A later statement, so a newer snapshot; whoever raises the fence holds the lock alone, so it stays where it is seen.
    SELECT p.fence, p.fence_asked_by IS NULL OR p.fence_asked_by = session_user, p.fence_purpose = 'recoverer'
        INTO STRICT fence_now, is_allocated, is_recoverers FROM {schema}.standing p;
    IF generation < fence_now THEN
        RETURN 'fenced';
    ELSIF generation > fence_now THEN
        PERFORM {schema}.fence_raise(generation);
    ELSIF NOT is_allocated THEN
        RETURN 'unallocated';
    ELSIF is_recoverers AND EXISTS (SELECT FROM {schema}.claim c
                                    WHERE c.generation = admit.generation AND c.state = 'open') THEN
        RETURN 'paused';
    END IF;
    RETURN 'admitted';
END
$$;

-- The lane, or an error where the kit was told the source's lanes and this is none of them: of a key in two lanes the
-- older event would pass for the newer.
CREATE FUNCTION {schema}.lane_checked(lane text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    lanes_now text[] := (SELECT p.lanes FROM {schema}.standing p);
BEGIN
    IF lane <> ALL (lanes_now) THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is no lane of this source: it has %s', lane, array_to_string(lanes_now, ', ')),
            HINT = 'Where the source has a new lane, tell the kit: lanes_tell.';
    END IF;
    RETURN lane;
END
$$;

-- The operation, or an error. Here: a constraint is compiled anew for each event.
CREATE FUNCTION {schema}.op_checked(op text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF op NOT IN ('insert', 'update', 'delete') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation',
            MESSAGE = format('%L is no operation', op), HINT = 'It is insert, update or delete.';
    END IF;
    RETURN op;
END
$$;

-- One event by every test, one after another: what `deliver` comes to when the event is not simply new.
CREATE FUNCTION {schema}.deliver_in_full(
    generation bigint, lane text, "position" bigint, ordinal bigint, event_id text, op text, key text, content jsonb,
    head_position bigint, head_ordinal bigint
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    answer text := {schema}.admit(deliver_in_full.generation);
    offered bytea;
    held bytea;
BEGIN
    IF answer <> 'admitted' THEN
        RETURN answer;
    END IF;
    offered := {schema}.payload_digest({schema}.op_checked(op), key, content);
    INSERT INTO {schema}.accepted AS a (lane, position, ordinal, generation, head_position, head_ordinal, accepted_at,
                                        admitted_in, payload_digest, op, event_id, key)
        VALUES ({schema}.lane_checked(lane), deliver_in_full.position, ordinal, generation, head_position, head_ordinal, clock_timestamp(),
                pg_current_xact_id(), offered, op, event_id, key)
        ON CONFLICT (lane, position, ordinal) DO NOTHING;
    IF FOUND THEN
        {effect_of_event}
        RETURN 'accepted';
    END IF;
    SELECT a.payload_digest INTO STRICT held FROM {schema}.accepted a
        WHERE a.lane = deliver_in_full.lane AND a.position = deliver_in_full.position
            AND a.ordinal = deliver_in_full.ordinal;
    IF held = offered THEN
        RETURN 'absorbed';
    END IF;
    INSERT INTO {schema}.altered (lane, position, ordinal, offered_digest, accepted_digest, generation, op, event_id, key)
        VALUES (lane, deliver_in_full.position, ordinal, offered, held, generation, op, event_id, key)
        ON CONFLICT DO NOTHING;
    RETURN 'altered';
END
$$;

-- One event: accepted | absorbed | altered | paused | fenced | unallocated. Counts when the transaction commits. The
-- effect lands with the entry or not at all. content null is absent content; 'null'::jsonb is null. head is the last
-- source coordinate the relay knew durable.
-- The common case, a new event of the generation the fence stands at, is told by one read, the shared lock, and one
-- statement that reads the fence again and inserts: within a transaction of its own each further expression costs as
-- much as a lookup. It raises no fence and answers nothing else; that is `deliver_in_full`. It waits for a claim or for a
-- row, and no longer than every wait at this sink.
CREATE FUNCTION {schema}.deliver(
    generation bigint, lane text, "position" bigint, ordinal bigint, event_id text, op text, key text, content jsonb,
    head_position bigint DEFAULT NULL, head_ordinal bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {pinned} AS $$
#variable_conflict use_column
DECLARE
    canonical text := {canonical_text};
BEGIN
    IF {has_trailing_zeros} THEN
        canonical := {zeros_dropped};
    END IF;
    -- In this order: a lock is taken only where it is the right one.
    IF current_setting('transaction_isolation') = 'read committed'
        AND (current_setting('synchronous_commit') IN ('on', 'remote_apply')
             OR set_config('synchronous_commit', 'on', true) IS NOT NULL)
        AND (SELECT p.fence = deliver.generation FROM {schema}.standing p) THEN
        LOCK TABLE {schema}.lock IN ROW SHARE MODE;
        INSERT INTO {schema}.accepted AS a (lane, position, ordinal, generation, head_position, head_ordinal, accepted_at,
                                            admitted_in, payload_digest, op, event_id, key)
            SELECT deliver.lane, deliver.position, deliver.ordinal, deliver.generation, deliver.head_position,
                   deliver.head_ordinal, clock_timestamp(), pg_current_xact_id(), {digest_of_canonical}, deliver.op,
                   deliver.event_id, deliver.key
            FROM {schema}.standing p
            WHERE p.fence = deliver.generation AND p.fence_purpose = 'relay'
                AND (p.fence_asked_by IS NULL OR p.fence_asked_by = session_user)
                AND (p.lanes IS NULL OR deliver.lane = ANY (p.lanes))
                AND deliver.op IN ('insert', 'update', 'delete')
            ON CONFLICT (lane, position, ordinal) DO NOTHING;
        IF FOUND THEN
            {effect_of_event}
            RETURN 'accepted';
        END IF;
    END IF;
    RETURN {schema}.deliver_in_full(generation, lane, deliver.position, ordinal, event_id, op, key, content,
                                    head_position, head_ordinal);
END
$$;

-- The word of each of these events, some of which this transaction has just landed: with entries from `first_entry` on,
-- none where it is null. What was offered with other content is told.
CREATE FUNCTION {schema}.words_of(generation bigint, events jsonb, first_entry bigint) RETURNS text[]
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    answers text[];
BEGIN
    WITH offered AS (
        SELECT x.ordinality AS n, coalesce(x.value ->> 'lane', '0') AS lane, (x.value ->> 'position')::bigint AS position,
               coalesce((x.value ->> 'ordinal')::bigint, 0) AS ordinal, x.value ->> 'event_id' AS event_id,
               x.value ->> 'op' AS op, x.value ->> 'key' AS key, x.value -> 'content' AS content
        FROM jsonb_array_elements(words_of.events) WITH ORDINALITY x
    ), compared AS MATERIALIZED (
        SELECT o.*, held.payload_digest AS accepted_digest,
               {schema}.payload_digest(o.op, o.key, o.content) AS offered_digest,
               held.admitted_in = pg_current_xact_id() AND held.entry >= words_of.first_entry
                   AND row_number() OVER (PARTITION BY o.lane, o.position, o.ordinal ORDER BY o.n) = 1 AS is_landed
        FROM offered o
        JOIN {schema}.accepted held ON held.lane = o.lane AND held.position = o.position AND held.ordinal = o.ordinal
    ), told AS (
        INSERT INTO {schema}.altered (lane, position, ordinal, offered_digest, accepted_digest, generation, op, event_id,
                                      key)
        SELECT c.lane, c.position, c.ordinal, c.offered_digest, c.accepted_digest, words_of.generation, c.op, c.event_id,
               c.key
        FROM compared c WHERE c.offered_digest <> c.accepted_digest
        ON CONFLICT DO NOTHING
    )
    SELECT array_agg(CASE WHEN c.is_landed THEN 'accepted' WHEN c.offered_digest = c.accepted_digest THEN 'absorbed'
                          ELSE 'altered' END ORDER BY c.n)
        INTO STRICT answers FROM compared c;
    RETURN answers;
END
$$;

-- Several events in this transaction, a word an event in their order. An event: {"lane": "0", "position": "17",
-- "ordinal": "0", "event_id": …, "op": "insert", "key": …, "content": …, "head_position": …, "head_ordinal": …};
-- a missing "content" is absent, a missing lane is '0', a missing ordinal 0.
-- One statement lands what is new; only where something was not does a second look at what the record holds.
CREATE FUNCTION {schema}.deliver_many(generation bigint, events jsonb) RETURNS text[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {pinned} AS $$
#variable_conflict use_column
DECLARE
    answer text := {schema}.admit(generation);
    answers text[];
    offered_count integer := jsonb_array_length(events);
    landed_count bigint;
    first_entry bigint;
BEGIN
    IF answer <> 'admitted' THEN
        RETURN array_fill(answer, ARRAY[offered_count]);
    END IF;
    WITH landed AS (
        INSERT INTO {schema}.accepted AS a (lane, position, ordinal, generation, head_position, head_ordinal, accepted_at,
                                            admitted_in, payload_digest, op, event_id, key)
        SELECT CASE WHEN coalesce(e.lane = ANY ((SELECT p.lanes FROM {schema}.standing p)::text[]), true) THEN e.lane
                    ELSE {schema}.lane_checked(e.lane) END,
               e.position, e.ordinal, deliver_many.generation, e.head_position, e.head_ordinal, clock_timestamp(),
               pg_current_xact_id(),
               CASE WHEN {has_trailing_zeros} THEN {schema}.payload_digest(op, key, content)
                    ELSE {digest_of_canonical} END,
               CASE WHEN op IN ('insert', 'update', 'delete') THEN op ELSE {schema}.op_checked(op) END, e.event_id, key
        FROM (SELECT x.ordinality, coalesce(x.value ->> 'lane', '0') AS lane, (x.value ->> 'position')::bigint AS position,
                     coalesce((x.value ->> 'ordinal')::bigint, 0) AS ordinal,
                     (x.value ->> 'head_position')::bigint AS head_position,
                     (x.value ->> 'head_ordinal')::bigint AS head_ordinal,
                     x.value ->> 'event_id' AS event_id, o.op, x.value ->> 'key' AS key, o.content,
                     {canonical_text} AS canonical
              FROM jsonb_array_elements(deliver_many.events) WITH ORDINALITY x,
              LATERAL (SELECT x.value ->> 'op' AS op, x.value -> 'content' AS content) o
              OFFSET 0) e
        ORDER BY e.ordinality
        ON CONFLICT (lane, position, ordinal) DO NOTHING
        RETURNING a.entry
    )
    SELECT count(*), min(l.entry) INTO STRICT landed_count, first_entry FROM landed l;
    IF landed_count = offered_count THEN
        answers := array_fill('accepted'::text, ARRAY[offered_count]);
    ELSE
        answers := {schema}.words_of(deliver_many.generation, deliver_many.events, first_entry);
    END IF;
    {effect_of_many}
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
