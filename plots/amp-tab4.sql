-- AMP, Table 4: one row per method. Columns: seat, name, the best and the average of its strategies over AMP's best: ours, then the
-- paper's; number of strategies.
WITH
paper (seat, name, best, mean) AS (
    VALUES (0, 'Megatron', 1.97, 2.62), (1, 'random', 1.71, 3.04), (2, 'AMP', 1.28, 1.73), (3, 'SA', 1.46, 2.29)),
strategy AS (
    SELECT CASE
             WHEN rank IS NOT NULL AND planner = 'megatron' THEN 0
             WHEN rank IS NOT NULL AND planner = 'amp-random' THEN 1
             WHEN rank IS NOT NULL AND planner = 'amp' THEN 2
             WHEN rank IS NOT NULL AND planner = 'amp-sa' THEN 3
           END AS seat, iteration_time_s AS s, max(ordinal)
    FROM (SELECT *, json_extract(options, '$.rank') AS rank, json_extract(options, '$.balance') AS balance
          FROM result WHERE experiment = 'amp-tab4' AND status = 'ok')
    GROUP BY hash),
method AS (SELECT seat, min(s) AS best, avg(s) AS mean, count(*) AS n FROM strategy WHERE seat IS NOT NULL GROUP BY seat),
unit AS (SELECT method.best AS ours, paper.best AS theirs FROM method JOIN paper USING (seat) WHERE seat = 2)
SELECT seat, name, method.best / ours, method.mean / ours, paper.best / theirs, paper.mean / theirs, n
FROM method JOIN paper USING (seat), unit
ORDER BY seat;
