-- The last applied coordinate of each key of a mapped target; this kit has none, so it stays empty.
CREATE TABLE {schema}.applied (
    lane text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    ordinal bigint NOT NULL,
    is_tombstone boolean NOT NULL,
    PRIMARY KEY (lane, key)
);
