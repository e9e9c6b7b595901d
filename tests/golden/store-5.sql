-- A store of schema version 5, as Kilter wrote it before version 6: two plans and two impossible ones (data/store/upgrade.c),
-- of tests/fault/test_sweep_command.c's experiment "old".
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
INSERT INTO run VALUES(1,'kilter sweep old.yaml --db old.db -j 1','1.4.0','36e24678c6c0','vm','2026-11-29T11:31:49Z',X'57c70fec0480d2b3');
CREATE TABLE part (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of text
    text TEXT NOT NULL CHECK (json_valid(text))          -- JSON with sorted keys
) STRICT;
INSERT INTO part VALUES(1,X'f9ed4d4b3dd155b759072cae650a16b070478a4ad4fc528668a93d49ec43707b','{"model":"synthetic:batch=1,global_batch=8,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
INSERT INTO part VALUES(2,X'109edcb27978abce7680ac4d236efb112190880fc6b92a394ca3a85950cfe0d8','{"cluster":{"device_types":[{"memory":"16 GiB","name":"g","rate":"10 TFLOP/s"}],"machines":[{"gpus":8,"inner":{"bandwidth":"16 GB/s","latency":"38 us"},"name":"box","type":"g"}],"name":"c","tuning":{"piece":"64 KiB","rules":[{"algorithm":"ring","collective":"all_reduce"}]}},"tuning":{"least_piece":"32 KiB","piece":"64 KiB","rules":[{"algorithm":"ring","collective":"all_reduce"},{"algorithm":"ring","collective":"all_reduce","most_ranks":2},{"algorithm":"halving","collective":"all_reduce","most_bytes":"64 KiB"},{"algorithm":"double_tree","collective":"all_reduce","most_bytes":"1 MiB"},{"algorithm":"ring","collective":"all_reduce"},{"algorithm":"halving","collective":"all_gather","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"all_gather"},{"algorithm":"ring","collective":"grouped_all_gather"},{"algorithm":"halving","collective":"reduce_scatter","most_bytes":"512 KiB","power_of_two":true},{"algorithm":"ring","collective":"reduce_scatter"},{"algorithm":"ring","collective":"grouped_reduce_scatter"},{"algorithm":"direct","collective":"all_to_all"},{"algorithm":"tree","collective":"broadcast","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"broadcast"},{"algorithm":"tree","collective":"reduce","most_bytes":"64 KiB"},{"algorithm":"ring","collective":"reduce"},{"algorithm":"direct","collective":"send"},{"algorithm":"direct","collective":"push"},{"algorithm":"direct","collective":"pull"}]}}');
INSERT INTO part VALUES(3,X'5993577716b9e4f9058a0195a55c2f27ef383ba807f968864b9d56aec65dea4b','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"dp-ev","version":"1.4.0"}');
INSERT INTO part VALUES(4,X'ce8dee5152f4c62eebeefc9d0da74d25ece80adf7b95dededb59cbd6bcc15bfb','{"gates":{"cut":0,"whole":0},"parameters":{"cut":0,"elements":1000,"whole":1},"placement":{"all_reduced":1,"devices_an_op":{"g":1.0},"duplicated":{},"served":0}}');
INSERT INTO part VALUES(5,X'd6c11771b815301592c2197586a60f391d9677a3dee25c406f71f6b45a221e54','{"fidelity":"stage","granularity":"machine","options":{"beam":"500","bucket":"0","budget_s":"0","certify":"0","collectives":"both","max_rounds":"8","ratios":"own","search":"own"},"planner":"megatron","version":"1.4.0"}');
INSERT INTO part VALUES(6,X'ac548841d7870fedc907c5f0c5121e3b96b7e18fae44740a5b1202ac642b5490','{"model":"synthetic:batch=2,global_batch=16,layers=1,forward=0.01s,backward=0.02s,gradient=4000B,optimizer=adam,precision=single"}');
CREATE TABLE answer (
    id      INTEGER PRIMARY KEY,
    hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the question, which is these four:
    subject INTEGER NOT NULL REFERENCES part (id), -- what is trained, or sent
    cluster INTEGER NOT NULL REFERENCES part (id), -- on what
    method  INTEGER NOT NULL REFERENCES part (id), -- planner, fidelity and all options
    seed    INTEGER NOT NULL CHECK (seed >= 0),
    run     INTEGER NOT NULL REFERENCES run (id),
    planner TEXT NOT NULL, fidelity TEXT NOT NULL, granularity TEXT NOT NULL, gpus INTEGER NOT NULL CHECK (gpus > 0), status TEXT NOT NULL CHECK (status IN ('ok', 'oom', 'impossible', 'error')), message TEXT, iteration_time_s REAL, fractional_time_s REAL, lower_bound_s REAL, gap REAL, optimal INTEGER NOT NULL CHECK (optimal IN (0, 1)), stages INTEGER NOT NULL, peak_memory_bytes INTEGER NOT NULL, communication_s REAL, computation_s REAL, search_time_s REAL, balance_time_s REAL, plan TEXT CHECK (plan IS NULL OR json_valid(plan)), detail TEXT CHECK (detail IS NULL OR json_valid(detail)), -- data/store/columns.h
    common  INTEGER REFERENCES part (id), -- further members of the report (detail), which many answers have in common
    seal    BLOB NOT NULL
) STRICT;
INSERT INTO answer VALUES(1,X'354464fc58d739085a8a46e5a167b8a16d5a3c15b0a1391599b5acad2b772fdc',1,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,0.030076437499999997271,0.030076437499999997271,NULL,NULL,0,2,20009,0.0,0.030076437499999997271,3.100000000000000135e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076437499999997,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":20009,"n":1}],"pace":{"mfu":6.6563734484843827e-9,"samples_per_s":265.98894899038493}}',4,X'9f5b4d8084761b0e');
INSERT INTO answer VALUES(2,X'e27d9a60bf84fd6d53a6da62c30c7d914c523611862fa5a71d01aaaba7334ffc',1,2,5,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu (in an experiment granularity: [gpu])',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'd514c2b22f6d1c2e');
INSERT INTO answer VALUES(3,X'77be056158f22794a1ea797d6a104fe3e7a49cd17ffe51b9ea419218bca6b56f',6,2,3,1,1,'dp-ev','stage','machine',8,'ok',NULL,0.030076437499999997271,0.030076437499999997271,NULL,NULL,0,2,28017,0.0,0.030076437499999997271,1.0000000000000000817e-05,0.0,'{"counts":[],"ratios":[[1.0]]}','{"devices":[{"busy_s":0.030076437499999997,"communication_s":0.0,"hidden_s":0.0,"idle_s":0.0,"memory_bytes":28017,"n":1}],"pace":{"mfu":1.3312746896968765e-8,"samples_per_s":531.97789798076985}}',4,X'2359f4c78a720d2a');
INSERT INTO answer VALUES(4,X'52cf683a7e7b8fdbd6ba1e48ee726ae787b74a44f53ea35993fb3ecf6147e346',6,2,5,1,1,'megatron','stage','machine',8,'impossible','megatron plans for single GPUs: expected --granularity gpu (in an experiment granularity: [gpu])',NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'4740c21a191974af');
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
INSERT INTO asked VALUES('old',1,1,'synthetic:layers=1,gradient=4000B,batch=1','c.yaml','dp-ev','{"model.batch":"1"}',X'a4051833099a83e2');
INSERT INTO asked VALUES('old',2,2,'synthetic:layers=1,gradient=4000B,batch=1','c.yaml','megatron','{"model.batch":"1"}',X'9bedace8cfcf5943');
INSERT INTO asked VALUES('old',3,3,'synthetic:layers=1,gradient=4000B,batch=2','c.yaml','dp-ev','{"model.batch":"2"}',X'6dd9472b813eb3ec');
INSERT INTO asked VALUES('old',4,4,'synthetic:layers=1,gradient=4000B,batch=2','c.yaml','megatron','{"model.batch":"2"}',X'5132974649925268');
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
CREATE VIEW result AS
SELECT asked.experiment, asked.ordinal, lower(hex(answer.hash)) AS hash,
       asked.model, asked.cluster, asked.entry, nullif(asked.axes, '{}') AS axes,
       answer.planner, answer.fidelity, answer.granularity, answer.gpus, answer.seed, answer.status, answer.message, answer.iteration_time_s, answer.fractional_time_s, answer.lower_bound_s, answer.gap, answer.optimal, answer.stages, answer.peak_memory_bytes, answer.communication_s, answer.computation_s, answer.search_time_s, answer.balance_time_s, json_extract(answer.plan, '$.ratios') AS ratios, answer.plan,
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
     LEFT JOIN part AS common ON common.id = answer.common
;
CREATE VIEW best AS
SELECT *, min(iteration_time_s) AS best_time_s FROM result WHERE status = 'ok' GROUP BY experiment, model, cluster;
CREATE VIEW configuration AS SELECT experiment, ordinal, hash, model, cluster, entry, json_extract(axes, '$."model.batch"') AS "model.batch", planner, fidelity, granularity, gpus, seed, status, message, iteration_time_s, fractional_time_s, lower_bound_s, gap, optimal, stages, peak_memory_bytes, communication_s, computation_s, search_time_s, balance_time_s, ratios, run FROM result;
PRAGMA application_id = 1265398898;
PRAGMA user_version = 5;
COMMIT;
