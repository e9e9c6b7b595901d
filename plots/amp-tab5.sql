-- AMP, Table 5: one row per method. Columns: seat, name, the best and the average of its strategies over AMP's best: ours, then the
-- paper's; number of strategies; deviation of ours and the paper's; our best and average as text.
WITH
paper (seat, name, best, mean, deviation) AS (
    VALUES (0, 'Megatron', 1.89, 1.94, 0.05), (1, 'even parameters', 2.19, 2.19, 0), (2, 'even layers', 1.25, 1.25, 0), (3, 'AMP', 1.07, 1.66, 0.67)),
strategy AS (
    SELECT CASE
             WHEN rank IS NOT NULL AND planner = 'megatron' THEN 0
             WHEN planner = 'megatron' AND balance = 'parameters' THEN 1
             WHEN planner = 'megatron' THEN 2
             WHEN planner = 'amp' THEN 3
           END AS seat, iteration_time_s AS s, max(ordinal) AS ordinal
    FROM (SELECT *, json_extract(options, '$.rank') AS rank, json_extract(options, '$.balance') AS balance
          FROM result WHERE experiment = 'amp-tab5' AND status = 'ok')
    GROUP BY hash),
base (seat) AS (VALUES (3)),
.read shared/amp-methods.sql
