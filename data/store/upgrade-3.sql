-- A store of version 3 made new: an answer's whole report stood in its detail.
DROP VIEW IF EXISTS configuration;
DROP VIEW best;
DROP VIEW result;
ALTER TABLE run RENAME TO before_run;
ALTER TABLE part RENAME TO before_part;
ALTER TABLE answer RENAME TO before_answer;
ALTER TABLE asked RENAME TO before_asked;
DROP INDEX IF EXISTS answer_run;

-- today's tables

INSERT INTO run SELECT * FROM before_run;
INSERT INTO part SELECT * FROM before_part;

-- The members that many answers have in common, in the form of result_take_detail (experiments/sweep/result.h).
CREATE TEMP VIEW before_common AS
SELECT id, CASE WHEN json_type(detail, '$.gates') = 'object' AND json_type(detail, '$.parameters') = 'object'
                     AND json_type(detail, '$.placement') = 'object'
                THEN json_object('gates', json(json_extract(detail, '$.gates')),
                                 'parameters', json(json_extract(detail, '$.parameters')),
                                 'placement', json(json_extract(detail, '$.placement'))) END AS text
FROM before_answer;

INSERT INTO part (hash, text)
SELECT kilter_hash(text), text FROM (SELECT DISTINCT text FROM before_common) WHERE text NOTNULL
ON CONFLICT DO NOTHING;

INSERT INTO answer (id, @ANSWER_3@, common, seal)
SELECT *, kilter_seal(@ANSWER_3@, common)
FROM (SELECT id, hash, subject, cluster, method, @FACTS@, plan,
             CASE WHEN b.text IS NULL THEN detail
                  ELSE nullif(json_remove(detail, '$.gates', '$.parameters', '$.placement'), '{}') END AS detail,
             (SELECT part.id FROM part WHERE part.hash = kilter_hash(b.text)) AS common
      FROM before_answer JOIN before_common AS b USING (id) ORDER BY id);

DROP VIEW before_common;

INSERT INTO asked (@STORE_ASKED_COLUMNS@, seal)
SELECT *, kilter_seal(@STORE_ASKED_COLUMNS@)
FROM (SELECT experiment, answer, ordinal, model, cluster, entry, coalesce(axes, '{}') AS axes FROM before_asked);

DROP TABLE before_asked;
DROP TABLE before_answer;
DROP TABLE before_part;
DROP TABLE before_run;
