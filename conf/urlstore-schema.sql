-- The tables of the replicated logs of urlstore, one set for all shards of a
-- cluster.  An administrator runs this once, in the database of the logs:
--
--     CREATE ROLE urlstore LOGIN PASSWORD '...';
--     CREATE DATABASE urlstore;
--     \c urlstore
--     \i urlstore-schema.sql
--
-- or with another role:  psql -v role=NAME -f urlstore-schema.sql
--
-- The role owns nothing and can change no table.  It may see what the standbys
-- of the server have: an administrator who may grant that runs this, such as a
-- superuser.  PostgreSQL 13 or later.

\set ON_ERROR_STOP on
\if :{?role}
\else
\set role urlstore
\endif

BEGIN;

-- what the module compares with the version that it knows

CREATE VIEW urlstore_schema AS SELECT 1 AS version;

-- a row for each shard.  base is the number of the base that is in force, 0 if
-- there is none; tries counts the bases that were begun

CREATE TABLE urlstore_shard (
    shard     int     PRIMARY KEY CHECK (shard >= 0),
    uuid      uuid    NOT NULL,
    settings  text    NOT NULL,
    term      bigint  NOT NULL,
    holder    text    NOT NULL,
    beat      bigint  NOT NULL,
    acked     bigint  NOT NULL,
    base      bigint  NOT NULL,
    tries     bigint  NOT NULL
) WITH (fillfactor = 25);

-- the rows of the logs.  lsn -1 is the beginning of a log

CREATE TABLE urlstore_log (
    shard     int     NOT NULL,
    lsn       bigint  NOT NULL CHECK (lsn >= -1),
    next_lsn  bigint  NOT NULL CHECK (next_lsn > lsn),
    term      bigint  NOT NULL,
    acked     bigint  NOT NULL,
    crc32c    bigint  NOT NULL,
    payload   bytea   NOT NULL,
    PRIMARY KEY (shard, lsn)
);

-- stores as of the beginning of their log, in parts

CREATE TABLE urlstore_base (
    shard     int     NOT NULL,
    base      bigint  NOT NULL,
    part      int     NOT NULL,
    payload   bytea   NOT NULL,
    PRIMARY KEY (shard, base, part)
);

-- the bytes are compressed already

ALTER TABLE urlstore_log ALTER payload SET STORAGE EXTERNAL;
ALTER TABLE urlstore_base ALTER payload SET STORAGE EXTERNAL;

REVOKE ALL ON urlstore_schema, urlstore_shard, urlstore_log, urlstore_base
    FROM PUBLIC;

GRANT pg_read_all_stats TO :"role";
GRANT SELECT ON urlstore_schema TO :"role";
GRANT SELECT, INSERT, UPDATE ON urlstore_shard TO :"role";

-- of a row of the log only the first is changed, by a new base; the right is
-- also needed to lock the row after which another one is appended

GRANT SELECT, INSERT, DELETE, UPDATE (next_lsn, term, acked, crc32c)
    ON urlstore_log TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON urlstore_base TO :"role";

COMMIT;
