-- AMP, Fig. 3: our side of the claims in data/paper/amp.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT planner, coalesce(json_extract(options, '$.balance'), 'layers') AS balance,
           CAST(substr(model, instr(model, 'upsample=') + 9) AS INTEGER) AS u, iteration_time_s AS s, max(ordinal)
    FROM result WHERE experiment = 'amp-fig3' AND status = 'ok' GROUP BY planner, balance, u),
pair AS (
    SELECT u, even.balance AS balance, even.s / amp.s AS gain
    FROM point AS even JOIN point AS amp USING (u) WHERE even.planner = 'megatron' AND amp.planner = 'amp'),
list AS (
    SELECT balance, min(gain) AS least, max(gain) AS most, group_concat(printf('%.2f', gain), ', ') AS text
    FROM (SELECT * FROM pair ORDER BY u) GROUP BY balance)
SELECT 'never-worse' AS claim, min(least) >= 0.999 AS ours,
       group_concat('over ' || balance || ': ' || text, '; ') AS note,
       'the assignment is exact for the predicted time, the times are simulated' AS reason
FROM list HAVING count(*) > 0
UNION ALL
SELECT 'gains', most > 1.1, 'over ' || balance || ', by growing heterogeneity: ' || text, 'even cuts happen to be balanced'
FROM list WHERE balance = 'layers';
