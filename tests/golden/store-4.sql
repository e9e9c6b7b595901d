-- A store of schema version 4, as Kilter wrote it before version 5: two plans and two impossible ones (data/store/upgrade.c).
BEGIN TRANSACTION;
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
INSERT INTO "answer" VALUES(1,X'FC7CB633BDA62ED863BB7A4963EA95FADA5C0E6C7594030D70C2EF9B712E3646',1,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,3.0076435729847496997e-02,3.00764357298474935276e-02,NULL,NULL,0,2,20009,0.0,3.0076435729847496997e-02,3.7e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}]}',4,X'45EE6F8A85E2D632');
INSERT INTO "answer" VALUES(2,X'61D6BE91A365B7623AE572169A4949BC333BCFF2472F4B4FA2F28C8689426719',1,2,5,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'7AC2A32665221B5B');
INSERT INTO "answer" VALUES(3,X'4A9E51FC9B97F3B8E9B33CA7AF21D8538BF49BFEFFBA5E5A673B20940DDEB262',6,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,3.0076435729847496997e-02,3.00764357298474935276e-02,NULL,NULL,0,2,28017,0.0,3.0076435729847496997e-02,2.5e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076435729847497,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":28017,"n":1}]}',4,X'9A7F8C9E56FFA7F1');
INSERT INTO "answer" VALUES(4,X'1B5917A43454E4855DA16659FFD3A619E0F0D09A47693823D4B4542830A33A0A',6,2,5,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'210409E28BEADB71');
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
INSERT INTO "asked" VALUES('old',1,1,'synthetic:layers=1,gradient=4000B,batch=1','rtx-4090-8','dp-ev','{"model.batch":"1"}',X'16FF8599F6C3AA1B');
INSERT INTO "asked" VALUES('old',2,2,'synthetic:layers=1,gradient=4000B,batch=1','rtx-4090-8','megatron','{"model.batch":"1"}',X'F7D3AE6CC1FD0ABE');
INSERT INTO "asked" VALUES('old',3,3,'synthetic:layers=1,gradient=4000B,batch=2','rtx-4090-8','dp-ev','{"model.batch":"2"}',X'04FB1B365A6BC67B');
INSERT INTO "asked" VALUES('old',4,4,'synthetic:layers=1,gradient=4000B,batch=2','rtx-4090-8','megatron','{"model.batch":"2"}',X'4D35353C5254397C');
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
CREATE TABLE part (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of text
    text TEXT NOT NULL CHECK (json_valid(text))          -- JSON with sorted keys
) STRICT;
INSERT INTO "part" VALUES(1,X'F9ED4D4B3DD155B759072CAE650A16B070478A4AD4FC528668A93D49EC43707B','{"model":"synthetic:batch=1,global_batch=8,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
INSERT INTO "part" VALUES(2,X'F54E64D32B8AEE2EF30A4078FADC9A34DA3FA9A93716C996CDD1E12DFF533A4A','{"cluster":{"device_types":[{"memory":"24 GiB","name":"rtx-4090","rate":"35518 GFLOP/s","rates":{"bf16":"92512000000000.02 FLOP/s","fp16":"92512000000000.02 FLOP/s","fp8":"132120 GFLOP/s"}}],"machines":[{"gpus":8,"inner":{"bandwidth":"16065 MB/s","latency":"38 us"},"name":"box","type":"rtx-4090"}],"name":"rtx-4090-8"},"tuning":{"least_piece":"32 KiB","piece":"512 KiB","rules":[{"algorithm":"ring","collective":"all_reduce","most_ranks":2},{"algorithm":"halving","collective":"all_reduce","most_bytes":"64 KiB"},{"algorithm":"double_tree","collective":"all_reduce","most_bytes":"1 MiB"},{"algorithm":"ring","collective":"all_reduce"},{"algorithm":"halving","collective":"all_gather","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"all_gather"},{"algorithm":"ring","collective":"grouped_all_gather"},{"algorithm":"halving","collective":"reduce_scatter","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"reduce_scatter"},{"algorithm":"ring","collective":"grouped_reduce_scatter"},{"algorithm":"direct","collective":"all_to_all"},{"algorithm":"tree","collective":"broadcast","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"broadcast"},{"algorithm":"tree","collective":"reduce","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"reduce"},{"algorithm":"direct","collective":"send"},{"algorithm":"direct","collective":"push"},{"algorithm":"direct","collective":"pull"}]}}');
INSERT INTO "part" VALUES(3,X'DB60DA8A7646B4393F2882EAF36B0E8019889FDB553F9F67A54DBC06E37343AF','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"dp-ev","version":"0.1.0"}');
INSERT INTO "part" VALUES(4,X'9728C4336DB9558C4929F44ED4D46592984EDA7458BF140CCBA877867889E9DC','{"gates":{"cut":0,"whole":0},"parameters":{"cut":0,"elements":1000,"whole":1},"placement":{"all_reduced":1,"devices_an_op":{"rtx-4090":1.0},"duplicated":{},"served":0}}');
INSERT INTO "part" VALUES(5,X'13FB81C87ECBA3B2E97ADAC6496246D78CE7B1068B998341197C14552342A30B','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"megatron","version":"0.1.0"}');
INSERT INTO "part" VALUES(6,X'AC548841D7870FEDC907C5F0C5121E3B96B7E18FAE44740A5B1202AC642B5490','{"model":"synthetic:batch=2,global_batch=16,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
CREATE TABLE run (
    id       INTEGER PRIMARY KEY,
    command  TEXT NOT NULL, -- command line
    version  TEXT NOT NULL, -- of kilter
    revision TEXT NOT NULL, -- the commit that it was built from; '' if that is not known
    host     TEXT NOT NULL,
    started  TEXT NOT NULL, -- UTC, ISO 8601
    seal     BLOB NOT NULL
) STRICT;
INSERT INTO "run" VALUES(1,'kilter sweep old.yaml --db old.db -j 1','0.1.0','789a390c7aa6','vm','2026-11-28T01:19:46Z',X'E39DAC6FDABEFA69');
CREATE VIEW result AS
SELECT asked.experiment, asked.ordinal, lower(hex(answer.hash)) AS hash,
       asked.model, asked.cluster, asked.entry, asked.axes,
       answer.planner, answer.fidelity, answer.granularity, answer.gpus, answer.seed,
       answer.status, answer.message, answer.iteration_time_s, answer.fractional_time_s, answer.lower_bound_s, answer.gap,
       answer.optimal, answer.stages, json_extract(answer.plan, '$.ratios') AS ratios, answer.plan,
       answer.peak_memory_bytes, answer.communication_s, answer.computation_s, answer.search_time_s, answer.balance_time_s,
       -- an object of all members: those of both objects, neither of which is empty
       CASE WHEN common.text IS NULL THEN answer.detail WHEN answer.detail IS NULL THEN common.text
            ELSE substr(common.text, 1, length(common.text) - 1) || ',' || substr(answer.detail, 2) END AS detail,
       answer.run,
       -- the question, whole: its SHA-256 is that of the three parts' SHA-256 and the seed
       '{"cluster":' || machines.text || ',"method":' || method.text || ',"seed":' || answer.seed ||
       ',"subject":' || subject.text || '}' AS config,
       json_extract(method.text, '$.options') AS options,
       subject.text AS subject, json_extract(subject.text, '$.model') AS spec
FROM asked CROSS JOIN answer ON answer.id = asked.answer
     LEFT JOIN part AS subject ON subject.id = answer.subject
     LEFT JOIN part AS machines ON machines.id = answer.cluster
     LEFT JOIN part AS method ON method.id = answer.method
     LEFT JOIN part AS common ON common.id = answer.common;
CREATE VIEW best AS
SELECT *, min(iteration_time_s) AS best_time_s FROM result WHERE status = 'ok' GROUP BY experiment, model, cluster;
CREATE VIEW configuration AS SELECT experiment, ordinal, hash, model, cluster, entry, json_extract(axes, '$."model.batch"') AS "model.batch", planner, fidelity, granularity, gpus, seed, status, message, iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s, ratios, run FROM result;
PRAGMA application_id = 1265398898;
PRAGMA user_version = 4;
COMMIT;
