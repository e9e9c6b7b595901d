-- AMP, Table 4: one row per method. Columns: seat, name, the best and the average of its strategies over AMP's best: ours, then the
-- paper's; number of strategies; deviation of ours and the paper's; our best and average as text.
WITH
paper (seat, name, best, mean, deviation) AS (
    VALUES (0, 'Megatron', 1.97, 2.62, 0.37), (1, 'random', 1.71, 3.04, 0.82), (2, 'AMP', 1.28, 1.73, 0.43), (3, 'SA', 1.46, 2.29, 0.68)),
strategy AS (
    SELECT CASE
             WHEN rank IS NOT NULL AND planner = 'megatron' THEN 0
             WHEN rank IS NOT NULL AND planner = 'amp-random' THEN 1
             WHEN rank <= 10 AND planner = 'amp' THEN 2
             WHEN rank IS NOT NULL AND planner = 'amp-sa' THEN 3
           END AS seat, iteration_time_s AS s, max(ordinal) AS ordinal
    FROM (SELECT *, CAST(json_extract(options, '$.rank') AS INTEGER) AS rank, json_extract(options, '$.balance') AS balance
          FROM result WHERE experiment = 'amp-tab4' AND status = 'ok')
    GROUP BY hash),
base (seat) AS (VALUES (2)),
.read shared/amp-methods.sql
