-- The result store (data/store/store.h). The file's application_id is 'Kltr', its user_version the schema's version; both
-- are set with the tables, in one transaction.

-- One invocation that wrote results.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    command TEXT NOT NULL, -- command line
    version TEXT NOT NULL, -- of kilter
    host    TEXT NOT NULL,
    started TEXT NOT NULL  -- UTC, ISO 8601
) STRICT;

-- One evaluated configuration of an experiment; what several experiments ask for has a row in each. NULL: does not
-- apply, or infinite.
CREATE TABLE result (
    hash       TEXT NOT NULL -- SHA-256 of config
               CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*'),
    run        INTEGER NOT NULL REFERENCES run (id),
    experiment TEXT NOT NULL,
    config     TEXT NOT NULL CHECK (json_valid(config)), -- effective configuration, sorted keys
    model      TEXT NOT NULL,
    cluster    TEXT NOT NULL,
    planner    TEXT NOT NULL,
    fidelity   TEXT NOT NULL,
    granularity TEXT NOT NULL,
    gpus       INTEGER NOT NULL CHECK (gpus > 0),
    seed       INTEGER NOT NULL CHECK (seed >= 0),
    status     TEXT NOT NULL CHECK (status IN ('ok', 'oom', 'error')),
    message    TEXT, -- why not ok
    iteration_time_s  REAL,
    fractional_time_s REAL, -- before rounding
    lower_bound_s     REAL,
    gap               REAL,
    optimal           INTEGER NOT NULL CHECK (optimal IN (0, 1)),
    stages            INTEGER NOT NULL,
    ratios            TEXT CHECK (ratios IS NULL OR json_valid(ratios)), -- [segment][device]
    peak_memory_bytes INTEGER NOT NULL, -- of one GPU, largest over devices
    communication_s   REAL,
    computation_s     REAL,
    search_time_s     REAL, -- wall clock, as the next
    balance_time_s    REAL,
    detail            TEXT CHECK (detail IS NULL OR json_valid(detail)),
    UNIQUE (hash, experiment)
) STRICT;

CREATE INDEX result_run ON result (run);
