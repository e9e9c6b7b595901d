-- Views of the result store (data/store/store.h). store_select makes the same ones for a single experiment, where the
-- table `asked` holds what the experiment asks now.

-- One row per experiment and answer.
CREATE VIEW result AS
SELECT asked.experiment, asked.ordinal, lower(hex(answer.hash)) AS hash,
       asked.model, asked.cluster, asked.entry, nullif(asked.axes, '{}') AS axes,
       {method}, answer.seed, {numbers}, json_extract(answer.plan, '$.ratios') AS ratios, answer.plan,
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

-- The fastest plan of each model on each cluster of an experiment.
CREATE VIEW best AS
SELECT *, min(iteration_time_s) AS best_time_s FROM result WHERE status = 'ok' GROUP BY experiment, model, cluster;
