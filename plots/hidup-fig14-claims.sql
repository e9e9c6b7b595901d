-- HiDup, Fig. 14: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT *, CAST(substr(spec, instr(spec, ',layers=') + 8) AS INTEGER) AS layers, max(ordinal)
    FROM result WHERE planner = 'hidup' AND fidelity = 'stage' AND granularity = 'gpu' AND model LIKE 'bert-sgmoe%' AND search_time_s > 0 AND
          cluster IN ('hidup-1x4', 'hidup-1x8', 'hidup-2x8', 'hidup-4x8')
    GROUP BY cluster, layers),
mean AS (
    SELECT sum(ln(layers)) / count(*) AS x, sum(ln(search_time_s)) / count(*) AS y FROM point WHERE cluster = 'hidup-1x4'),
told AS (
    SELECT group_concat(printf('%.0f ms for %d layers on %d GPUs', 1e3 * search_time_s, layers, gpus), ', ') AS note
    FROM point WHERE layers = 24 OR layers = 6)
SELECT 'linear', sum((ln(layers) - x) * (ln(search_time_s) - y)) / sum((ln(layers) - x) * (ln(layers) - x)), note,
       'times are wall clock of one run each, beside whatever else the machine does'
FROM point, mean, told WHERE cluster = 'hidup-1x4' HAVING count(*) > 1
UNION ALL
SELECT 'gpus', max(search_time_s) / min(search_time_s), note,
       'what is worth trying depends on the links: labels that the search keeps differ, and wall-clock times do'
FROM point, told WHERE layers = 6 HAVING count(*) > 1;
