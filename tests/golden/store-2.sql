-- A store of schema version 2, as Kilter wrote it before version 3: two plans, one of them asked by two experiments, and one that fails.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO run VALUES(1,'kilter sweep old.yaml --db old.db','0.1.0','vm','2026-11-22T20:15:13Z');
INSERT INTO result VALUES('cc2096a1a83d0c3df0efd2413051e23b6ea3810408bbcd7b280d9c3c9949e8fa',1,'old','{"cluster":{"machines":[{"gpus":8,"inner":{"bandwidth":16065000000,"latency_s":3.8e-05},"memory_bytes":25769803776,"rate":35518000000000,"type":"rtx-4090"}],"name":"rtx-4090-8"},"fidelity":"stage","granularity":"machine","model":"synthetic:batch=1,layers=1,forward=0.01s,backward=0.02s,gradient=4000B","options":{"beam":"500","max_rounds":"8"},"planner":"dp-ev","seed":1,"version":"0.1.0"}','synthetic:batch=1,layers=1,forward=0.01s,backward=0.02s,gradient=4000B','rtx-4090-8','dp-ev','stage','machine',8,1,'ok',NULL,0.0300764357298475,0.0300764357298475,NULL,NULL,0,2,'[[1.0]]',20009,0.0,0.0300764357298475,3.7e-05,0.0,'{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}]}');
INSERT INTO result VALUES('565808828d0b225d5c0999a9c0b8967293bbd296d903fc47f9389f18cfd4aff0',1,'old','{"cluster":{"machines":[{"gpus":8,"inner":{"bandwidth":16065000000,"latency_s":3.8e-05},"memory_bytes":25769803776,"rate":35518000000000,"type":"rtx-4090"}],"name":"rtx-4090-8"},"fidelity":"stage","granularity":"machine","model":"synthetic:batch=2,layers=1,forward=0.01s,backward=0.02s,gradient=4000B","options":{"beam":"500","max_rounds":"8"},"planner":"dp-ev","seed":1,"version":"0.1.0"}','synthetic:batch=2,layers=1,forward=0.01s,backward=0.02s,gradient=4000B','rtx-4090-8','dp-ev','stage','machine',8,1,'ok',NULL,0.0300764357298475,0.0300764357298475,NULL,NULL,0,2,'[[1.0]]',28017,0.0,0.0300764357298475,3.7e-05,0.0,'{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}]}');
INSERT INTO result VALUES('44264eeae58c36386c59f0b84855b48906bd38edbfad657856b55ed09e6c1712',1,'old','{"cluster":{"machines":[{"gpus":8,"inner":{"bandwidth":16065000000,"latency_s":3.8e-05},"memory_bytes":25769803776,"rate":35518000000000,"type":"rtx-4090"}],"name":"rtx-4090-8"},"fidelity":"stage","granularity":"machine","model":"synthetic:batch=2,layers=1,forward=0.01s,backward=0.02s,gradient=4000B","options":{"beam":"500","max_rounds":"8"},"planner":"megatron","seed":1,"version":"0.1.0"}','synthetic:batch=2,layers=1,forward=0.01s,backward=0.02s,gradient=4000B','rtx-4090-8','megatron','stage','machine',8,1,'error','megatron is for models with attention',NULL,NULL,NULL,NULL,0,0,NULL,0,NULL,NULL,3.7e-05,0.0,NULL);
INSERT INTO result VALUES('cc2096a1a83d0c3df0efd2413051e23b6ea3810408bbcd7b280d9c3c9949e8fa',1,'other','{"cluster":{"machines":[{"gpus":8,"inner":{"bandwidth":16065000000,"latency_s":3.8e-05},"memory_bytes":25769803776,"rate":35518000000000,"type":"rtx-4090"}],"name":"rtx-4090-8"},"fidelity":"stage","granularity":"machine","model":"synthetic:batch=1,layers=1,forward=0.01s,backward=0.02s,gradient=4000B","options":{"beam":"500","max_rounds":"8"},"planner":"dp-ev","seed":1,"version":"0.1.0"}','synthetic:batch=1,layers=1,forward=0.01s,backward=0.02s,gradient=4000B','rtx-4090-8','dp-ev','stage','machine',8,1,'ok',NULL,0.0300764357298475,0.0300764357298475,NULL,NULL,0,2,'[[1.0]]',20009,0.0,0.0300764357298475,3.7e-05,0.0,'{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}]}');
PRAGMA application_id = 1265398898;
PRAGMA user_version = 2;
COMMIT;
