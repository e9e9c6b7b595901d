-- HiDup, Fig. 14b: our side of the claims in data/paper/hidup.csv, by the partial programs that the search
-- keeps. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT *, json_extract(detail, '$.search_labels') AS labels, max(ordinal)
    FROM result WHERE experiment = 'hidup-fig14b' AND json_extract(detail, '$.search_labels') > 0 GROUP BY gpus)
SELECT 'gpus', 1.0 * max(labels) / min(labels),
       'partial programs that are kept: ' ||
           (SELECT group_concat(printf('%d on %d GPUs', labels, gpus), ', ') FROM point),
       'what is worth keeping depends on the links (column machines: on one machine fewer programs are as good as others)'
FROM point HAVING count(*) = 5;
