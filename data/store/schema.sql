-- The result store (data/store/store.h). The file's application_id is 'Kltr', its user_version the schema's version; both
-- are set with the tables, in one transaction. A row's seal is a checksum of its other columns (kilter_seal in
-- data/store/database.c), which is compared when a store is opened.

-- One invocation that wrote answers.
CREATE TABLE run (
    id       INTEGER PRIMARY KEY,
    command  TEXT NOT NULL, -- command line
    version  TEXT NOT NULL, -- of kilter
    revision TEXT NOT NULL, -- the commit that it was built from; '' if that is not known
    host     TEXT NOT NULL,
    started  TEXT NOT NULL, -- UTC, ISO 8601
    seal     BLOB NOT NULL
) STRICT;

-- What many questions have in common, each text once: what is trained, the cluster, the method; and what many answers have.
CREATE TABLE part (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of text
    text TEXT NOT NULL CHECK (json_valid(text))          -- JSON with sorted keys
) STRICT;

-- The answer to a question. NULL: does not apply, or infinite.
CREATE TABLE answer (
    id      INTEGER PRIMARY KEY,
    hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the question, which is these four:
    subject INTEGER NOT NULL REFERENCES part (id), -- what is trained, or sent
    cluster INTEGER NOT NULL REFERENCES part (id), -- on what
    method  INTEGER NOT NULL REFERENCES part (id), -- planner, fidelity and all options
    seed    INTEGER NOT NULL CHECK (seed >= 0),
    run     INTEGER NOT NULL REFERENCES run (id),
    planner     TEXT NOT NULL,
    fidelity    TEXT NOT NULL,
    granularity TEXT NOT NULL,
    gpus        INTEGER NOT NULL CHECK (gpus > 0),
    status      TEXT NOT NULL CHECK (status IN ('ok', 'oom', 'impossible', 'error')),
    message     TEXT, -- why not ok
    iteration_time_s  REAL,
    fractional_time_s REAL, -- before rounding
    lower_bound_s     REAL,
    gap               REAL,
    optimal           INTEGER NOT NULL CHECK (optimal IN (0, 1)),
    stages            INTEGER NOT NULL,
    peak_memory_bytes INTEGER NOT NULL, -- of one GPU, largest over devices
    communication_s   REAL,
    computation_s     REAL,
    search_time_s     REAL, -- wall clock, as the next
    balance_time_s    REAL,
    plan              TEXT CHECK (plan IS NULL OR json_valid(plan)), -- the plan's strategy: ratios, stages, uneven counts
    detail            TEXT CHECK (detail IS NULL OR json_valid(detail)), -- a further report, a JSON object,
    common            INTEGER REFERENCES part (id), -- with the members of this one, which many answers have in common
    seal              BLOB NOT NULL
) STRICT;

-- Which experiment asked, under which names. What several experiments ask is answered once.
CREATE TABLE asked (
    experiment TEXT NOT NULL,
    answer     INTEGER NOT NULL REFERENCES answer (id),
    ordinal    INTEGER NOT NULL, -- in the experiment's grid, from 1
    model      TEXT NOT NULL,    -- as the experiment's file has it, as the next two
    cluster    TEXT NOT NULL,
    entry      TEXT NOT NULL,    -- of the planner, with its own options
    axes       TEXT CHECK (axes IS NULL OR json_valid(axes)), -- further axes of the grid: {"key": "value"}
    seal       BLOB NOT NULL,
    PRIMARY KEY (experiment, answer)
) STRICT, WITHOUT ROWID;
