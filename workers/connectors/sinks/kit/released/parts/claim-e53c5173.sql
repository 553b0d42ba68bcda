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
    FROM {schema}.protocol p LEFT JOIN {schema}.generation g ON g.number = p.fence
$$;

-- The open claim for which a relay has to wait, or null. A claim left open for too long holds nobody up.
CREATE FUNCTION {schema}.relay_must_wait() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('claim', c.generation, 'claimed_by', c.claimed_by, 'claimed_at', c.claimed_at,
                              'until', c.claimed_at + make_interval(secs => p.relay_wait_seconds))
    FROM {schema}.claim c, {schema}.protocol p
    WHERE c.state = 'open' AND c.claimed_at + make_interval(secs => p.relay_wait_seconds) > clock_timestamp()
$$;

-- allocated | wait. One for each start of a relay group, one for each recoverer; bound to the login that asks.
CREATE FUNCTION {schema}.generation_allocate(
    purpose text, given_name text, OUT answer text, OUT generation bigint, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {schema}.isolation_check();
    IF generation_allocate.purpose = 'relay' THEN
        detail := {schema}.relay_must_wait();
    END IF;
    IF detail IS NOT NULL THEN
        answer := 'wait';
        RETURN;
    END IF;
    answer := 'allocated';
    generation := {schema}.generation_next(generation_allocate.purpose, generation_allocate.given_name);
END
$$;

-- started | refused | unallocated | busy (detail: whom it waited for). Raises the fence to the generation.
CREATE FUNCTION {schema}.begin(
    generation bigint, wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {schema}.isolation_check();
    IF generation <= (SELECT p.fence FROM {schema}.protocol p) THEN
        answer := 'refused';
    ELSIF NOT {schema}.is_allocated(generation) THEN
        answer := 'unallocated';
    ELSE
        detail := {schema}.lock_take(true, wait_seconds);
        IF detail IS NOT NULL THEN
            answer := 'busy';
        ELSIF generation <= (SELECT p.fence FROM {schema}.protocol p) THEN
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
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {schema}.isolation_check();
    answer := 'wait';
    detail := {schema}.relay_must_wait();
    IF detail IS NOT NULL THEN
        RETURN;
    END IF;
    detail := {schema}.lock_take(true, wait_seconds);
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
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fence_now bigint;
BEGIN
    PERFORM {schema}.isolation_check();
    answer := 'refused';
    SELECT p.fence INTO STRICT fence_now FROM {schema}.protocol p;
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
    detail := {schema}.lock_take(true, wait_seconds);
    IF detail IS NOT NULL THEN
        answer := 'busy';
        RETURN;
    END IF;
    SELECT p.fence INTO STRICT fence_now FROM {schema}.protocol p;
    IF claim.generation > fence_now THEN
        PERFORM {schema}.fence_raise(claim.generation);
        INSERT INTO {schema}.claim (generation, claimed_by, frontier)
            VALUES (claim.generation, session_user, claim.frontier);
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

-- The claim, locked, for a step of its own generation: refusal is 'fenced', 'busy' or null.
CREATE FUNCTION {schema}.claim_lock(
    generation bigint, wait_seconds double precision, OUT refusal text, OUT detail jsonb, OUT held {schema}.claim
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    PERFORM {schema}.isolation_check();
    detail := {schema}.lock_take(false, wait_seconds);
    IF detail IS NOT NULL THEN
        refusal := 'busy';
        RETURN;
    END IF;
    IF claim_lock.generation < (SELECT p.fence FROM {schema}.protocol p) THEN
        refusal := 'fenced';
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', greatest(1, (wait_seconds * 1000)::bigint)::text, true);
        SELECT c.* INTO held FROM {schema}.claim c WHERE c.generation = claim_lock.generation FOR UPDATE;
        PERFORM set_config('lock_timeout', was, true);
    EXCEPTION WHEN lock_not_available THEN
        refusal := 'busy';
        detail := {schema}.lock_holders();
    END;
END
$$;

-- armed (detail arm) | fenced | no claim | too large | busy. A later arm takes the place of an earlier one.
CREATE FUNCTION {schema}.arm(
    generation bigint, entry_count bigint, entry_digest text, frontier jsonb,
    wait_seconds double precision DEFAULT {lock_wait_seconds}, OUT answer text, OUT detail jsonb
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked record;
    held {schema}.claim;
    limit_now bigint := (SELECT p.batch_limit FROM {schema}.protocol p);
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
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_at bigint;
BEGIN
    SELECT c.allocated INTO STRICT now_at FROM {schema}.counter c FOR UPDATE;
    IF above - now_at > 1000000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%s lies more than a thousand million above the counter, which is at %s', above, now_at);
    END IF;
    UPDATE {schema}.counter c SET allocated = above WHERE c.allocated < above;
    RETURN greatest(now_at, above);
END
$$;
