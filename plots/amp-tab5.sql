-- AMP, Table 5: one row per method. Columns: seat, name, the best and the average of its strategies over AMP's best: ours, then the
-- paper's; number of strategies.
WITH
paper (seat, name, best, mean) AS (
    VALUES (0, 'Megatron', 1.89, 1.94), (1, 'even parameters', 2.19, 2.19), (2, 'even layers', 1.25, 1.25), (3, 'AMP', 1.07, 1.66)),
strategy AS (
    SELECT CASE
             WHEN rank IS NOT NULL AND planner = 'megatron' THEN 0
             WHEN planner = 'megatron' AND balance = 'parameters' THEN 1
             WHEN planner = 'megatron' THEN 2
             WHEN planner = 'amp' THEN 3
           END AS seat, iteration_time_s AS s, max(ordinal)
    FROM (SELECT *, json_extract(options, '$.rank') AS rank, json_extract(options, '$.balance') AS balance
          FROM result WHERE experiment = 'amp-tab5' AND status = 'ok')
    GROUP BY hash),
method AS (SELECT seat, min(s) AS best, avg(s) AS mean, count(*) AS n FROM strategy WHERE seat IS NOT NULL GROUP BY seat),
unit AS (SELECT method.best AS ours, paper.best AS theirs FROM method JOIN paper USING (seat) WHERE seat = 3)
SELECT seat, name, method.best / ours, method.mean / ours, paper.best / theirs, paper.mean / theirs, n
FROM method JOIN paper USING (seat), unit
ORDER BY seat;
