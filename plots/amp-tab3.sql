-- AMP, Table 3: one row per method. Columns: seat, name, the best and the average of its strategies over AMP's best: ours, then the
-- paper's; number of strategies; deviation of ours and the paper's; our best and average as text.
WITH
paper (seat, name, best, mean, deviation) AS (
    VALUES (0, 'Megatron', 1.32, 2.41, 1.29), (1, 'AMP', 1.2, 1.43, 0.18), (2, 'SA', 1.57, 1.82, 0.17)),
strategy AS (
    SELECT CASE
             WHEN rank IS NOT NULL AND planner = 'megatron' THEN 0
             WHEN rank IS NOT NULL AND planner = 'amp' THEN 1
             WHEN rank IS NOT NULL AND planner = 'amp-sa' THEN 2
           END AS seat, iteration_time_s AS s, max(ordinal) AS ordinal
    FROM (SELECT *, json_extract(options, '$.rank') AS rank, json_extract(options, '$.balance') AS balance
          FROM result WHERE experiment = 'amp-tab3' AND status = 'ok')
    GROUP BY hash),
base (seat) AS (VALUES (1)),
.read shared/amp-methods.sql
