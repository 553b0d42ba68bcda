-- Generations, claims, and what becomes of them.

CREATE FUNCTION {schema}.generation_next(purpose text, given_name text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    allocated_now bigint;
BEGIN
    IF NOT pg_has_role(session_user, CASE generation_next.purpose WHEN 'relay' THEN {relay_text}
                                     ELSE {recoverer_text} END::name, 'MEMBER') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s is no %s of this pipeline', session_user, generation_next.purpose),
            HINT = format('GRANT %I TO %I;', CASE generation_next.purpose WHEN 'relay' THEN {relay_text}
                                             ELSE {recoverer_text} END, session_user);
    END IF;
    UPDATE {schema}.counter c SET allocated = c.allocated + 1 RETURNING c.allocated INTO STRICT allocated_now;
    INSERT INTO {schema}.generation (number, purpose, asked_by, given_name)
        VALUES (allocated_now, generation_next.purpose, session_user, generation_next.given_name);
    RETURN allocated_now;
END
$$;

-- Who took a generation: the name that was given and the login that asked. Null where nobody did.
CREATE FUNCTION {schema}.taken_by(generation bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' as ', g.given_name, g.asked_by) FROM {schema}.generation g WHERE g.number = taken_by.generation
$$;

-- Where the fence stands, who raised it there, and when.
CREATE FUNCTION {schema}.fence_told() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('fence', p.fence, 'superseded_who', {schema}.taken_by(p.fence), 'superseded_at', g.begun_at)
    FROM {schema}.standing p LEFT JOIN {schema}.generation g ON g.number = p.fence
$$;

-- The open claim for which a relay has to wait, or null. A claim left open for too long holds nobody up.
CREATE FUNCTION {schema}.relay_must_wait() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('claim', c.generation, 'claimed_by', c.claimed_by, 'claimed_at', c.claimed_at,
                              'until', c.claimed_at + make_interval(secs => p.relay_wait_seconds))
    FROM {schema}.claim c, {schema}.standing p
    WHERE c.state = 'open' AND c.claimed_at + make_interval(secs => p.relay_wait_seconds) > clock_timestamp()
$$;

-- allocated | wait | busy (a recoverer's; detail: whom it waited for). One for each start of a relay group, one for each recoverer; bound to the login that asks.
CREATE FUNCTION {schema}.generation_allocate(
    purpose text, given_name text, OUT answer text, OUT generation bigint, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    PERFORM {schema}.transaction_check();
    answer := 'wait';
    detail := {schema}.lock_take('counter', {lock_wait_seconds});
    IF detail IS NOT NULL THEN
        IF generation_allocate.purpose = 'relay' THEN
            detail := jsonb_build_object('waits_for', detail);
        ELSE
            answer := 'busy';
        END IF;
        RETURN;
    ELSIF generation_allocate.purpose = 'relay' THEN
        detail := {schema}.relay_must_wait();
    END IF;
    IF detail IS NOT NULL THEN
        RETURN;
    END IF;
    answer := 'allocated';
    generation := {schema}.generation_next(generation_allocate.purpose, generation_allocate.given_name);
END
$$;

-- started | refused | unallocated | busy (detail: whom it waited for). Raises the fence to the generation.
CREATE FUNCTION {schema}.begin(
    generation bigint, wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    PERFORM {schema}.transaction_check();
    IF generation <= (SELECT p.fence FROM {schema}.standing p) THEN
        answer := 'refused';
    ELSIF NOT {schema}.is_allocated(generation) THEN
        answer := 'unallocated';
    ELSE
        detail := {schema}.lock_take('alone', wait_seconds);
        IF detail IS NOT NULL THEN
            answer := 'busy';
        ELSIF generation <= (SELECT p.fence FROM {schema}.standing p) THEN
            answer := 'refused';
        ELSE
            PERFORM {schema}.fence_raise(generation);
            answer := 'started';
        END IF;
    END IF;
END
$$;

-- A relay group's start. started: its generation and the position of each lane to start after (lane -> {"position",
-- "ordinal", "generation"}: as held, and whose fire stored it, so that a relay starts from each hand-over once, also where
-- two name one place; a lane without one: wherever the relay likes, what it sends twice is absorbed). wait: ask again;
-- detail says for which claim, or for whose transactions.
CREATE FUNCTION {schema}.relay_start(
    name text, wait_seconds double precision DEFAULT {lock_wait_seconds},
    OUT answer text, OUT generation bigint, OUT start jsonb, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    PERFORM {schema}.transaction_check();
    answer := 'wait';
    detail := {schema}.relay_must_wait();
    IF detail IS NOT NULL THEN
        RETURN;
    END IF;
    detail := coalesce({schema}.lock_take('counter', wait_seconds), {schema}.lock_take('alone', wait_seconds));
    IF detail IS NOT NULL THEN
        detail := jsonb_build_object('waits_for', detail);
        RETURN;
    END IF;
    detail := {schema}.relay_must_wait();  -- again: a claim may have been granted while this waited
    IF detail IS NOT NULL THEN
        RETURN;
    END IF;
    generation := {schema}.generation_next('relay', relay_start.name);
    PERFORM {schema}.fence_raise(generation);
    SELECT coalesce(jsonb_object_agg(h.lane, jsonb_build_object('position', h.position::text, 'ordinal', h.ordinal::text,
                                                                'generation', h.generation::text)), '{}'::jsonb)
        INTO STRICT start FROM {schema}.hand_over h;
    answer := 'started';
END
$$;

-- A claim as it is told: with who took the generation that superseded it.
CREATE FUNCTION {schema}.claim_told(held {schema}.claim) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT to_jsonb(claim_told.held) || jsonb_build_object('superseded_who', {schema}.taken_by((claim_told.held).superseded_by))
$$;

-- granted | refused | unallocated | busy (detail: whom it waited for). The fence stands at the generation when granted:
-- nothing older enters any more, so what is read of the record from now on stays true for this claim.
CREATE FUNCTION {schema}.claim(
    generation bigint, frontier jsonb, wait_seconds double precision DEFAULT {lock_wait_seconds},
    OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    fence_now bigint;
BEGIN
    PERFORM {schema}.transaction_check();
    answer := 'refused';
    SELECT p.fence INTO STRICT fence_now FROM {schema}.standing p;
    IF claim.generation < fence_now THEN
        detail := {schema}.fence_told();
        RETURN;
    ELSIF NOT {schema}.is_allocated(claim.generation) THEN
        answer := 'unallocated';
        RETURN;
    ELSIF (SELECT g.purpose FROM {schema}.generation g WHERE g.number = claim.generation) <> 'recoverer' THEN
        detail := jsonb_build_object('reason', 'the generation is a relay''s');
        RETURN;
    END IF;
    detail := {schema}.lock_take('alone', wait_seconds);
    IF detail IS NOT NULL THEN
        answer := 'busy';
        RETURN;
    END IF;
    SELECT p.fence INTO STRICT fence_now FROM {schema}.standing p;
    IF claim.generation > fence_now THEN
        PERFORM {schema}.fence_raise(claim.generation);
        INSERT INTO {schema}.claim (generation, claimed_by, frontier)
            VALUES (claim.generation, session_user, claim.frontier);
        PERFORM {schema}.lanes_add(claim.frontier);
        answer := 'granted';
    ELSE  -- the same claim, if it is still open, reads again: what it had armed counts no more
        UPDATE {schema}.claim c
            SET frontier = claim.frontier, armed_count = NULL, armed_digest = NULL, armed_at = NULL
            WHERE c.generation = claim.generation AND c.generation = fence_now AND c.state = 'open';
        IF FOUND THEN
            answer := 'granted';
        ELSE
            detail := {schema}.fence_told();
        END IF;
    END IF;
END
$$;

-- granted (the generation drawn for it, or that of this name's claim where it is still open) | refused (detail: where the
-- fence stands) | busy (detail: whom it waited for). Number, fence and claim are one step under both locks, so no relay's
-- number can come between. `newest`: the newest claim its caller knew of (claim_find); refused where a newer one has been
-- made, for then the caller slept while another went on.
CREATE FUNCTION {schema}.claim_open(
    name text, frontier jsonb, newest bigint DEFAULT NULL, wait_seconds double precision DEFAULT {lock_wait_seconds},
    OUT answer text, OUT generation bigint, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    PERFORM {schema}.transaction_check();
    detail := coalesce({schema}.lock_take('counter', wait_seconds), {schema}.lock_take('alone', wait_seconds));
    IF detail IS NOT NULL THEN
        answer := 'busy';
        RETURN;
    END IF;
    UPDATE {schema}.claim AS c  -- it reads again: what it had armed counts no more
        SET frontier = claim_open.frontier, armed_count = NULL, armed_digest = NULL, armed_at = NULL
        FROM {schema}.generation g
        WHERE c.state = 'open' AND g.number = c.generation AND g.given_name = claim_open.name AND g.asked_by = session_user
        RETURNING c.generation INTO generation;
    IF generation IS NULL THEN
        IF EXISTS (SELECT FROM {schema}.claim c WHERE c.generation > newest) THEN
            answer := 'refused';
            detail := {schema}.fence_told();
            RETURN;
        END IF;
        generation := {schema}.generation_next('recoverer', claim_open.name);
        PERFORM {schema}.fence_raise(generation);
        INSERT INTO {schema}.claim (generation, claimed_by, frontier)
            VALUES (claim_open.generation, session_user, claim_open.frontier);
    END IF;
    PERFORM {schema}.lanes_add(claim_open.frontier);
    answer := 'granted';
END
$$;

-- found | busy. detail: the generations that recoverers of names beginning like this have drawn, and the newest claim of
-- anybody (0: none). It waits behind every claim that was asked for before, so that none of them can be granted later.
CREATE FUNCTION {schema}.claim_find(
    name text, wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
BEGIN
    PERFORM {schema}.transaction_check();
    answer := 'busy';
    detail := coalesce({schema}.lock_take('counter', wait_seconds), {schema}.lock_take('shared', wait_seconds));
    IF detail IS NULL THEN
        answer := 'found';
        detail := jsonb_build_object(
            'newest', (SELECT coalesce(max(c.generation), 0) FROM {schema}.claim c),
            'generations', (SELECT coalesce(jsonb_agg(g.number ORDER BY g.number), '[]'::jsonb) FROM {schema}.generation g
                            WHERE g.purpose = 'recoverer' AND starts_with(g.given_name, claim_find.name)));
    END IF;
END
$$;

-- The source's lanes as it is told them now; null: not known, so that a delivery's lane is not checked.
CREATE FUNCTION {schema}.lanes_tell(lanes text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    busy jsonb := {schema}.lock_take('alone', {lock_wait_seconds});
BEGIN
    PERFORM {schema}.transaction_check();
    IF busy IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = 'telling the lanes waits for transactions that are inside the sink', DETAIL = busy::text;
    END IF;
    UPDATE {schema}.standing p SET lanes = nullif(lanes_tell.lanes, ARRAY[]::text[]);
END
$$;

-- A claim's frontier names each lane that the source has: what was told before is widened, never narrowed or begun.
CREATE FUNCTION {schema}.lanes_add(frontier jsonb) RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE {schema}.standing p SET lanes = ARRAY(SELECT unnest(p.lanes) UNION SELECT jsonb_object_keys(frontier) ORDER BY 1)
        WHERE jsonb_typeof(frontier) = 'object' AND EXISTS (SELECT FROM jsonb_object_keys(frontier) k WHERE k <> ALL (p.lanes))
$$;

-- The claim, locked, for a step of its own generation: refusal is 'fenced', 'busy' or null.
CREATE FUNCTION {schema}.claim_lock(
    generation bigint, wait_seconds double precision, OUT refusal text, OUT detail jsonb, OUT held {schema}.claim
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    PERFORM {schema}.transaction_check();
    detail := {schema}.lock_take('shared', wait_seconds);
    IF detail IS NOT NULL THEN
        refusal := 'busy';
        RETURN;
    END IF;
    IF claim_lock.generation < (SELECT p.fence FROM {schema}.standing p) THEN
        refusal := 'fenced';
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', {schema}.wait_held(wait_seconds), true);
        SELECT c.* INTO held FROM {schema}.claim c WHERE c.generation = claim_lock.generation FOR UPDATE;
        PERFORM set_config('lock_timeout', was, true);
    EXCEPTION WHEN lock_not_available THEN
        refusal := 'busy';
        detail := {schema}.lock_holders({claim_text}::regclass);
    END;
END
$$;

-- armed (detail arm) | fenced | no claim | too large | busy. A later arm takes the place of an earlier one.
CREATE FUNCTION {schema}.arm(
    generation bigint, entry_count bigint, entry_digest text, frontier jsonb,
    wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    locked record;
    held {schema}.claim;
    limit_now bigint := (SELECT p.batch_limit FROM {schema}.standing p);
BEGIN
    SELECT * INTO STRICT locked FROM {schema}.claim_lock(arm.generation, wait_seconds);
    answer := locked.refusal;
    detail := locked.detail;
    held := locked.held;
    IF answer IS NOT NULL THEN
        RETURN;
    ELSIF held.state IS DISTINCT FROM 'open' THEN
        answer := 'no claim';
    ELSIF NOT {schema}.is_allocated(arm.generation) THEN
        answer := 'unallocated';
    ELSIF entry_count > limit_now THEN
        answer := 'too large';
        detail := jsonb_build_object('batch_limit', limit_now);
    ELSE
        UPDATE {schema}.claim c
            SET arm = c.arm + 1, armed_count = arm.entry_count, armed_digest = arm.entry_digest,
                armed_at = clock_timestamp(), frontier = coalesce(arm.frontier, c.frontier)
            WHERE c.generation = arm.generation;
        answer := 'armed';
        detail := jsonb_build_object('arm', held.arm + 1);
    END IF;
END
$$;

-- released | fired | superseded | no claim | busy: a person gives an open claim up. The fence stays where it is.
CREATE FUNCTION {schema}.release(
    generation bigint, reason text, wait_seconds double precision DEFAULT {lock_wait_seconds},
    OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    locked record;
    held {schema}.claim;
BEGIN
    SELECT * INTO STRICT locked FROM {schema}.claim_lock(release.generation, wait_seconds);
    answer := locked.refusal;
    detail := locked.detail;
    held := locked.held;
    IF answer = 'busy' THEN
        RETURN;
    END IF;
    answer := coalesce(held.state, 'no claim');
    IF held.state = 'open' THEN
        UPDATE {schema}.claim c
            SET state = 'released', released_at = clock_timestamp(), released_by = session_user,
                released_because = release.reason
            WHERE c.generation = release.generation;
        answer := 'released';
    END IF;
END
$$;

-- What became of the claim, read by locking it: a fire that was still running has ended by then. none: not granted.
CREATE FUNCTION {schema}.settle(
    generation bigint, wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    locked record;
    held {schema}.claim;
BEGIN
    SELECT * INTO STRICT locked FROM {schema}.claim_lock(settle.generation, wait_seconds);
    answer := locked.refusal;
    detail := locked.detail;
    held := locked.held;
    IF answer IS DISTINCT FROM 'busy' THEN
        answer := coalesce(held.state, 'none');
        detail := {schema}.claim_told(held);
    END IF;
END
$$;

-- After a restore of either side: the counter jumps above both. Bounded, so that no slip of a digit uses it all up.
CREATE FUNCTION {schema}.counter_raise(above bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET "TimeZone" = 'UTC' SET "DateStyle" = 'ISO, MDY' SET "IntervalStyle" = 'postgres' SET bytea_output = 'hex' SET extra_float_digits = 1 SET lock_timeout = '60s' AS $$
DECLARE
    busy jsonb := {schema}.lock_take('counter', {lock_wait_seconds});
    now_at bigint;
BEGIN
    PERFORM {schema}.transaction_check();
    IF busy IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = 'raising the counter waits for a transaction that has drawn a number', DETAIL = busy::text;
    END IF;
    SELECT c.allocated INTO STRICT now_at FROM {schema}.counter c;
    IF above - now_at > 1000000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%s lies more than a thousand million above the counter, which is at %s', above, now_at);
    END IF;
    UPDATE {schema}.counter c SET allocated = above WHERE c.allocated < above;
    RETURN greatest(now_at, above);
END
$$;
