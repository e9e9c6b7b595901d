-- A store of version 2 made new: a row for each experiment and configuration, without seals.
DROP INDEX result_run;
ALTER TABLE run RENAME TO before_run;
ALTER TABLE result RENAME TO before_result;

-- today's tables

INSERT INTO run (id, @STORE_RUN_COLUMNS@, seal)
SELECT id, @STORE_RUN_COLUMNS@, kilter_seal(@STORE_RUN_COLUMNS@)
FROM (SELECT *, '' AS revision FROM before_run);

-- Its configuration, whole, stands for the method, and makes its question.
CREATE TEMP VIEW before_part AS
SELECT rowid AS id, json_object('model', model) AS subject, json_object('cluster', cluster) AS cluster, config AS method
FROM before_result;

INSERT INTO part (hash, text)
SELECT kilter_hash(text), text
FROM (SELECT subject AS text FROM before_part UNION SELECT cluster FROM before_part UNION SELECT method FROM before_part);

INSERT INTO answer (@STORE_ANSWER_COLUMNS@, seal)
SELECT @STORE_ANSWER_COLUMNS@, kilter_seal(@STORE_ANSWER_COLUMNS@)
FROM (SELECT kilter_hash(config) AS hash,
             (SELECT part.id FROM part WHERE part.hash = kilter_hash(b.subject)) AS subject,
             (SELECT part.id FROM part WHERE part.hash = kilter_hash(b.cluster)) AS cluster,
             (SELECT part.id FROM part WHERE part.hash = kilter_hash(b.method)) AS method,
             @FACTS@, CASE WHEN ratios NOTNULL THEN json_object('ratios', json(ratios)) END AS plan,
             detail, NULL AS common, min(before_result.rowid) AS first
      FROM before_result JOIN before_part AS b ON b.id = before_result.rowid
      GROUP BY config ORDER BY first);

INSERT INTO asked (@STORE_ASKED_COLUMNS@, seal)
SELECT @STORE_ASKED_COLUMNS@, kilter_seal(@STORE_ASKED_COLUMNS@)
FROM (SELECT experiment, (SELECT answer.id FROM answer WHERE answer.hash = kilter_hash(config)) AS answer,
             row_number() OVER (PARTITION BY experiment ORDER BY rowid) AS ordinal,
             model, cluster, planner AS entry, '{}' AS axes
      FROM before_result);

DROP VIEW before_part;
DROP TABLE before_result;
DROP TABLE before_run;
