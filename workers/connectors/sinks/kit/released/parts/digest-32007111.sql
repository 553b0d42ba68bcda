-- Digests, computed here from what was handed over and never taken from the caller. limb0 to limb3 are an entry's digest
-- as signed 64-bit numbers, so that a batch's digest is four sums.
CREATE TYPE {schema}.digest AS (payload_digest bytea, limb0 bigint, limb1 bigint, limb2 bigint, limb3 bigint);

-- What is matched: op, key and content, whatever the coordinate. One expression a step, since every delivery comes here.
-- Declared immutable: convert_to and to_json(text) depend on the database's encoding alone, which never changes.
CREATE FUNCTION {schema}.payload_digest(op text, key text, content jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- absent content is the empty text; a delete's is null
    canonical text := coalesce(content::text, CASE op WHEN 'delete' THEN 'null' ELSE '' END);
BEGIN
    -- numbers lose trailing fractional zeros; two quick looks spare the replacement where there can be none
    IF position('.' IN canonical) > 0 AND canonical ~ '\.[0-9]*0([],}]|$)' THEN
        canonical := regexp_replace(canonical, '((?:"(?:[^"\\]|\\.)*"[^".]*)+)|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])', '\1\2', 'g');
    END IF;
    RETURN sha256(convert_to(
        op || ' ' || coalesce(to_json(key)::text, 'null') || ' '
           || encode(sha256(convert_to(canonical, 'UTF8')), 'hex'), 'UTF8'));
END
$$;

-- An entry: its coordinate and its payload. Only staging needs it, for the sum that a batch is armed with.
CREATE FUNCTION {schema}.entry_digest(
    lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb
) RETURNS {schema}.digest
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    payload bytea := {schema}.payload_digest(op, key, content);
    bits bit(256);
BEGIN
    bits := ('x' || encode(sha256(
        convert_to(lane, 'UTF8') || '\x00'::bytea || int8send(entry_digest.position) || int8send(ordinal) || payload),
        'hex'))::bit(256);
    RETURN ROW(payload, substring(bits FROM 1 FOR 64)::bigint, substring(bits FROM 65 FOR 64)::bigint,
               substring(bits FROM 129 FOR 64)::bigint, substring(bits FROM 193 FOR 64)::bigint)::{schema}.digest;
END
$$;

-- A batch on its way to the fire. Append-only, keyed so that a repeated task leaves the same rows. Unlogged: after a
-- crash of the server it is empty, the count no longer fits, and the batch is staged again.
CREATE UNLOGGED TABLE {schema}.staged (
    generation bigint NOT NULL,
    arm bigint NOT NULL,
    lane text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    event_id text,
    op text NOT NULL CONSTRAINT staged_op_is_known CHECK (op IN ('insert', 'update', 'delete')),
    key text,
    content jsonb,
    digest {schema}.digest NOT NULL
        GENERATED ALWAYS AS ({schema}.entry_digest(lane, position, ordinal, op, key, content)) STORED,
    PRIMARY KEY (generation, arm, lane, position, ordinal)
);
