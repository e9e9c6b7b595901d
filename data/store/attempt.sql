-- Which questions without an answer are worked on, and how earlier tries ended (data/store/attempt.c). A store of an earlier
-- version gets the table when it is opened for writing.
CREATE TABLE attempt (
    hash    BLOB PRIMARY KEY CHECK (length(hash) = 32), -- of the question
    host    TEXT NOT NULL,    -- where it is worked on, or was last
    pid     INTEGER NOT NULL, -- by which process
    process TEXT NOT NULL,    -- when the machine and the process began: tells it from others of this number
    started TEXT NOT NULL,    -- UTC, ISO 8601
    deaths  INTEGER NOT NULL CHECK (deaths >= 0), -- processes before this one that ended meanwhile
    message TEXT, -- the error that it gave; NULL: it is worked on, or the process ended
    seal    BLOB NOT NULL
) STRICT, WITHOUT ROWID;
