-- Tables: what the sink owns for this one pipeline. Everything is changed by the functions below and by nothing else.
CREATE SCHEMA {schema} AUTHORIZATION {owner};
{target_privileges}
SET LOCAL ROLE {owner};

-- What is locked: empty, and granted to nobody, so that nobody outside the kit can hold anybody up. See locks.
CREATE TABLE {schema}.lock ();

-- The fence stands apart from the counter: every admission reads it, and an allocation must not get in their way. With
-- it stands whose generation that is, so that an admission in it needs no other table. lanes: those of the source; null:
-- not told, so a delivery's lane is not checked.
CREATE TABLE {schema}.standing (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT kit_has_one_row CHECK (is_only),
    fence bigint NOT NULL DEFAULT 0,
    fence_purpose text NOT NULL DEFAULT 'relay',
    fence_asked_by name,
    kit_version integer NOT NULL,
    identity uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
    effect jsonb NOT NULL,
    batch_limit bigint NOT NULL CONSTRAINT batch_limit_is_positive CHECK (batch_limit > 0),
    relay_wait_seconds integer NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    installed_by name NOT NULL DEFAULT session_user,
    lanes text[] COLLATE "C" CONSTRAINT lanes_told_are_some CHECK (lanes <> ARRAY[]::text[])
);
INSERT INTO {schema}.standing (kit_version, effect, batch_limit, relay_wait_seconds, lanes)
VALUES ({kit_version}, {effect_json}, {batch_limit}, {relay_wait_seconds}, {lanes});

CREATE TABLE {schema}.counter (
    is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT counter_has_one_row CHECK (is_only),
    allocated bigint NOT NULL DEFAULT 0
);
INSERT INTO {schema}.counter DEFAULT VALUES;

-- asked_by null: any login may use it. Only generation 0, the first relay's, is so.
CREATE TABLE {schema}.generation (
    number bigint PRIMARY KEY,
    purpose text NOT NULL CONSTRAINT generation_purpose_is_known CHECK (purpose IN ('relay', 'recoverer')),
    asked_by name,
    given_name text NOT NULL,
    allocated_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    begun_at timestamptz,
    superseded_at timestamptz,
    superseded_by bigint
);
INSERT INTO {schema}.generation (number, purpose, given_name) VALUES (0, 'relay', 'first relay');

-- open: may arm and fire. fired: landed, used up. superseded: a newer generation passed it. released: a person gave it up.
CREATE TABLE {schema}.claim (
    generation bigint PRIMARY KEY REFERENCES {schema}.generation (number),
    state text NOT NULL DEFAULT 'open'
        CONSTRAINT claim_state_is_known CHECK (state IN ('open', 'fired', 'superseded', 'released')),
    claimed_by name NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    frontier jsonb,
    arm bigint NOT NULL DEFAULT 0,
    armed_count bigint,
    armed_digest text,
    armed_at timestamptz,
    fired_at timestamptz,
    landed_count bigint,
    absorbed_count bigint,
    altered_count bigint,
    start jsonb,
    superseded_by bigint,
    superseded_at timestamptz,
    released_at timestamptz,
    released_by name,
    released_because text
);
CREATE UNIQUE INDEX only_one_claim_is_open ON {schema}.claim ((true)) WHERE state = 'open';

-- The acceptance record: one entry an acceptance, append-only. admitted_in tells an audit what is new, by a snapshot.
CREATE TABLE {schema}.accepted (
    lane text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    entry bigint GENERATED ALWAYS AS IDENTITY,
    generation bigint NOT NULL,
    head_position bigint,
    head_ordinal bigint,
    accepted_at timestamptz NOT NULL,
    admitted_in xid8 NOT NULL,
    payload_digest bytea NOT NULL,
    op text COLLATE "C" NOT NULL,
    event_id text COLLATE "C",
    key text COLLATE "C",
    CONSTRAINT coordinate_is_accepted_once PRIMARY KEY (lane, position, ordinal)
);
-- Where entries of new transactions lie: a line for so many pages, for the record only grows. A number, because such an
-- index has no operators for xid8.
CREATE INDEX record_by_transaction ON {schema}.accepted USING brin ((admitted_in::text::bigint))
    WITH (pages_per_range = 32, autosummarize = on);

-- Offered again with other content, and absorbed. Once a coordinate and offered digest.
CREATE TABLE {schema}.altered (
    lane text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    offered_digest bytea NOT NULL,
    accepted_digest bytea NOT NULL,
    generation bigint NOT NULL,
    op text NOT NULL,
    event_id text,
    key text,
    offered_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (lane, position, ordinal, offered_digest)
);

-- Where the next relay run starts, a lane a row; stored by the fire itself.
CREATE TABLE {schema}.hand_over (
    lane text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    generation bigint NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

{applied}
