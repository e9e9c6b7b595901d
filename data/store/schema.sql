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
    {columns}, -- data/store/columns.h
    common  INTEGER REFERENCES part (id), -- further members of the report (detail), which many answers have in common
    seal    BLOB NOT NULL
) STRICT;

-- Which experiment asked, under which names. What several experiments, or points of a grid, ask is answered once.
CREATE TABLE asked (
    experiment TEXT NOT NULL,
    answer     INTEGER NOT NULL REFERENCES answer (id),
    ordinal    INTEGER NOT NULL, -- in the experiment's grid, from 1
    model      TEXT NOT NULL,    -- as the experiment's file has it, as the next two
    cluster    TEXT NOT NULL,
    entry      TEXT NOT NULL,    -- of the planner, with its own options
    axes       TEXT NOT NULL CHECK (json_valid(axes)), -- further axes of the grid: {"key": "value"}
    seal       BLOB NOT NULL,
    PRIMARY KEY (experiment, answer, model, cluster, entry, axes)
) STRICT, WITHOUT ROWID;
