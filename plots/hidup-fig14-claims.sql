-- HiDup, Fig. 14a: our side of the claims in data/paper/hidup.csv, by the partial programs that the search keeps; seconds (wall clock of one run
-- each) are shown beside them. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT *, CAST(substr(spec, instr(spec, ',layers=') + 8) AS INTEGER) AS layers,
           json_extract(detail, '$.search_labels') AS labels, max(ordinal)
    FROM result WHERE planner = 'hidup' AND model LIKE 'bert-sgmoe%' AND json_extract(detail, '$.search_labels') > 0
    GROUP BY cluster, layers),
mean AS (SELECT sum(ln(layers)) / count(*) AS x, sum(ln(labels)) / count(*) AS y FROM point WHERE cluster = 'hidup-1x4'),
told AS (
    SELECT group_concat(printf('%d (%.0f ms) for %d layers on %d GPUs', labels, 1e3 * search_time_s, layers, gpus), ', ') AS note
    FROM point WHERE layers IN (2, 24))
SELECT 'linear', sum((ln(layers) - x) * (ln(labels) - y)) / sum((ln(layers) - x) * (ln(layers) - x)),
       'partial programs that are kept: ' || note, 'more alternatives are worth keeping, the longer the program is'
FROM point, mean, told WHERE cluster = 'hidup-1x4' HAVING count(*) > 1;
