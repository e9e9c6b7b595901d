-- Adds the answers of the store `other` to `main` (data/store/merge.c). Ids differ between stores, so rows are matched by their
-- hashes and seals.

-- Another answer to the same question, if there is one.
SELECT lower(hex(a.hash)) || ' (iteration_time_s ' || coalesce(m.iteration_time_s, m.status) || ' and '
    || coalesce(a.iteration_time_s, a.status) || ')'
FROM other.answer AS a JOIN main.answer AS m USING (hash)
WHERE NOT (@MERGE_SAME@
    (SELECT p.hash FROM other.part AS p WHERE p.id = a.common) IS (SELECT p.hash FROM main.part AS p WHERE p.id = m.common))
LIMIT 1;

-- next
-- answers, and what they refer to
INSERT INTO main.run (@STORE_RUN_COLUMNS@, seal)
SELECT @STORE_RUN_COLUMNS@, seal FROM other.run AS r
WHERE seal NOT IN (SELECT seal FROM main.run) ORDER BY id;

INSERT INTO main.part (hash, text)
SELECT hash, text FROM other.part
WHERE hash NOT IN (SELECT hash FROM main.part) ORDER BY id;

INSERT INTO main.answer (@STORE_ANSWER_COLUMNS@, seal)
SELECT *, kilter_seal(@STORE_ANSWER_COLUMNS@) FROM (
    SELECT a.hash,
        (SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = a.subject) AS subject,
        (SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = a.cluster) AS cluster,
        (SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = a.method) AS method,
        seed,
        (SELECT min(m.id) FROM other.run AS r JOIN main.run AS m USING (seal) WHERE r.id = a.run) AS run @MERGE_NAMES@,
        (SELECT m.id FROM other.part AS p JOIN main.part AS m USING (hash) WHERE p.id = a.common) AS common
    FROM other.answer AS a
    WHERE hash NOT IN (SELECT hash FROM main.answer) ORDER BY a.id);

-- next
-- what experiments asked
INSERT INTO main.asked (@STORE_ASKED_COLUMNS@, seal)
SELECT *, kilter_seal(@STORE_ASKED_COLUMNS@) FROM (
    SELECT experiment,
        (SELECT m.id FROM other.answer AS a JOIN main.answer AS m USING (hash) WHERE a.id = o.answer) AS answer,
        ordinal, model, cluster, entry, axes
    FROM other.asked AS o)
WHERE true ON CONFLICT DO NOTHING;

-- next
-- attempts without an answer; those that this store knows of stay as they are
INSERT OR IGNORE INTO main.attempt (@STORE_ATTEMPT_COLUMNS@, seal)
SELECT @STORE_ATTEMPT_COLUMNS@, seal FROM other.attempt;
DELETE FROM main.attempt WHERE hash IN (SELECT hash FROM main.answer);
