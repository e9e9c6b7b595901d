-- A store of schema version 3, as Kilter wrote it before version 4: two plans and two impossible ones (data/store/upgrade.c).
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE run (
    id       INTEGER PRIMARY KEY,
    command  TEXT NOT NULL, -- command line
    version  TEXT NOT NULL, -- of kilter
    revision TEXT NOT NULL, -- the commit that it was built from; '' if that is not known
    host     TEXT NOT NULL,
    started  TEXT NOT NULL, -- UTC, ISO 8601
    seal     BLOB NOT NULL
) STRICT;
INSERT INTO run VALUES(1,'kilter sweep old.yaml --db old.db -j 1','0.1.0','a2d4b26d63b5-dirty','vm','2026-11-23T20:15:13Z',X'3c5094c7a3b535e3');
CREATE TABLE part (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of text
    text TEXT NOT NULL CHECK (json_valid(text))          -- JSON with sorted keys
) STRICT;
INSERT INTO part VALUES(1,X'f9ed4d4b3dd155b759072cae650a16b070478a4ad4fc528668a93d49ec43707b','{"model":"synthetic:batch=1,global_batch=8,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
INSERT INTO part VALUES(2,X'aa303610331bed5c1e48d88a42c059df591fe1992b1c51742de7eaf92e3ab2aa','{"cluster":{"device_types":[{"memory":"24 GiB","name":"rtx-4090","rate":"35518 GFLOP/s","rates":{"bf16":"92512000000000.02 FLOP/s","fp16":"92512000000000.02 FLOP/s","fp8":"132120 GFLOP/s"}}],"machines":[{"gpus":8,"inner":{"bandwidth":"16065 MB/s","latency":"38 us"},"name":"box","type":"rtx-4090"}],"name":"rtx-4090-8"},"tuning":{"piece":"512 KiB","rules":[{"algorithm":"ring","collective":"all_reduce","most_ranks":2},{"algorithm":"halving","collective":"all_reduce","most_bytes":"64 KiB"},{"algorithm":"double_tree","collective":"all_reduce","most_bytes":"1 MiB"},{"algorithm":"ring","collective":"all_reduce"},{"algorithm":"halving","collective":"all_gather","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"all_gather"},{"algorithm":"ring","collective":"grouped_all_gather"},{"algorithm":"halving","collective":"reduce_scatter","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"reduce_scatter"},{"algorithm":"ring","collective":"grouped_reduce_scatter"},{"algorithm":"direct","collective":"all_to_all"},{"algorithm":"tree","collective":"broadcast","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"broadcast"},{"algorithm":"tree","collective":"reduce","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"reduce"},{"algorithm":"direct","collective":"send"},{"algorithm":"direct","collective":"push"},{"algorithm":"direct","collective":"pull"}]}}');
INSERT INTO part VALUES(3,X'db60da8a7646b4393f2882eaf36b0e8019889fdb553f9f67a54dbc06e37343af','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"dp-ev","version":"0.1.0"}');
INSERT INTO part VALUES(4,X'13fb81c87ecba3b2e97adac6496246d78ce7b1068b998341197c14552342a30b','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"megatron","version":"0.1.0"}');
INSERT INTO part VALUES(5,X'ac548841d7870fedc907c5f0c5121e3b96b7e18fae44740a5b1202ac642b5490','{"model":"synthetic:batch=2,global_batch=16,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
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
    detail            TEXT CHECK (detail IS NULL OR json_valid(detail)),
    seal              BLOB NOT NULL
) STRICT;
INSERT INTO answer VALUES(1,X'6ce020f77b54bbc4013af52de7e39d04660f81432730a4e526afebddb96343bb',1,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,0.030076435729847496997,0.030076435729847493527,NULL,NULL,0,2,20009,0.0,0.030076435729847496997,6.2999999999999999901e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}],"gates":{"cut":0,"whole":0},"parameters":{"cut":0,"elements":1000,"whole":1},"placement":{"all_reduced":1,"devices_an_op":{"rtx-4090":1.0},"duplicated":{},"served":0}}',X'dcdde1c711818e35');
INSERT INTO answer VALUES(2,X'a28408f76e5af3c3b287a77f7274d58237d1130a7a33c7fb3f363d9ed31cd5cb',1,2,4,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,X'1a03c9438891858a');
INSERT INTO answer VALUES(3,X'8999dd6e1cc3d67217a3de7adb7f3fdf2e4cb8f436727d37d664bc1e389967bb',5,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,0.030076435729847496997,0.030076435729847493527,NULL,NULL,0,2,28017,0.0,0.030076435729847496997,3.0000000000000000758e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":28017,"n":1}],"gates":{"cut":0,"whole":0},"parameters":{"cut":0,"elements":1000,"whole":1},"placement":{"all_reduced":1,"devices_an_op":{"rtx-4090":1.0},"duplicated":{},"served":0}}',X'1bc9d16de23c9915');
INSERT INTO answer VALUES(4,X'138d79260a887c83ec04c822b45a55803c758b696025894d8ca14251428d23ba',5,2,4,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,X'048c400fd8f80e12');
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
INSERT INTO asked VALUES('old',1,1,'synthetic:layers=1,gradient=4000B,batch=1','rtx-4090-8','dp-ev','{"model.batch":"1"}',X'16ff8599f6c3aa1b');
INSERT INTO asked VALUES('old',2,2,'synthetic:layers=1,gradient=4000B,batch=1','rtx-4090-8','megatron','{"model.batch":"1"}',X'f7d3ae6cc1fd0abe');
INSERT INTO asked VALUES('old',3,3,'synthetic:layers=1,gradient=4000B,batch=2','rtx-4090-8','dp-ev','{"model.batch":"2"}',X'04fb1b365a6bc67b');
INSERT INTO asked VALUES('old',4,4,'synthetic:layers=1,gradient=4000B,batch=2','rtx-4090-8','megatron','{"model.batch":"2"}',X'4d35353c5254397c');
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
CREATE INDEX answer_run ON answer (run);
CREATE VIEW result AS
SELECT asked.experiment, asked.ordinal, lower(hex(answer.hash)) AS hash,
       asked.model, asked.cluster, asked.entry, asked.axes,
       answer.planner, answer.fidelity, answer.granularity, answer.gpus, answer.seed,
       answer.status, answer.message, answer.iteration_time_s, answer.fractional_time_s, answer.lower_bound_s, answer.gap,
       answer.optimal, answer.stages, json_extract(answer.plan, '$.ratios') AS ratios, answer.plan,
       answer.peak_memory_bytes, answer.communication_s, answer.computation_s, answer.search_time_s, answer.balance_time_s,
       answer.detail, answer.run,
       -- the question, whole: its SHA-256 is that of the three parts' SHA-256 and the seed
       '{"cluster":' || machines.text || ',"method":' || method.text || ',"seed":' || answer.seed ||
       ',"subject":' || subject.text || '}' AS config,
       json_extract(method.text, '$.options') AS options,
       subject.text AS subject, json_extract(subject.text, '$.model') AS spec
FROM asked CROSS JOIN answer ON answer.id = asked.answer
     LEFT JOIN part AS subject ON subject.id = answer.subject
     LEFT JOIN part AS machines ON machines.id = answer.cluster
     LEFT JOIN part AS method ON method.id = answer.method
;
CREATE VIEW best AS
SELECT *, min(iteration_time_s) AS best_time_s FROM result WHERE status = 'ok' GROUP BY experiment, model, cluster;
CREATE VIEW configuration AS SELECT experiment, ordinal, hash, model, cluster, entry, json_extract(axes, '$."model.batch"') AS "model.batch", planner, fidelity, granularity, gpus, seed, status, message, iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s, ratios, run FROM result;
COMMIT;
PRAGMA application_id = 1265398898;
PRAGMA user_version = 3;
