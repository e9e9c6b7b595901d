-- A store of version 4 made new: an experiment asked for an answer once, in the same words.
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

INSERT INTO answer SELECT * FROM before_answer;

INSERT INTO asked (@STORE_ASKED_COLUMNS@, seal)
SELECT *, kilter_seal(@STORE_ASKED_COLUMNS@)
FROM (SELECT experiment, answer, ordinal, model, cluster, entry, coalesce(axes, '{}') AS axes FROM before_asked);

DROP TABLE before_asked;
DROP TABLE before_answer;
DROP TABLE before_part;
DROP TABLE before_run;
