-- HAP, Fig. 2: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT planner, json_extract(options, '$.ratios') AS choice,
           CAST(substr(model, instr(model, 'global_batch=') + 13) AS INTEGER) AS batch, iteration_time_s AS s,
           computation_s / communication_s AS x
    FROM result WHERE experiment = 'hap-fig2' AND status = 'ok' GROUP BY planner, choice, model HAVING max(ordinal)),
pair AS (
    SELECT even.batch AS batch, even.x AS x, even.s AS even_s, cp.s AS cp_s, best.s AS best_s, hap.s AS hap_s
    FROM point AS even JOIN point AS cp USING (batch) JOIN point AS best USING (batch) JOIN point AS hap USING (batch)
    WHERE even.planner = 'deepspeed' AND even.choice = 'even' AND cp.planner = 'deepspeed' AND cp.choice = 'proportional'
      AND best.planner = 'deepspeed' AND best.choice = 'best' AND hap.planner = 'hap'),
low AS (SELECT * FROM pair ORDER BY x LIMIT 1),
high AS (SELECT * FROM pair ORDER BY x DESC LIMIT 1),
sweet AS (SELECT *, min(even_s, cp_s) / best_s AS gain FROM pair ORDER BY gain DESC LIMIT 1)
SELECT 'ev-low' AS claim, even_s < cp_s AS ours,
       printf('at a ratio of %.2f CP takes %.2f times as long as EV', x, cp_s / even_s) AS note,
       'the largest shard does not bound this program''s communication' AS reason
FROM low
UNION ALL
SELECT 'cp-high', cp_s < even_s, printf('at a ratio of %.2f EV takes %.2f times as long as CP', x, even_s / cp_s),
       'the slow devices do not bound this program''s computation'
FROM high
UNION ALL
SELECT 'sweet-point', gain > 1.005,
       printf('best ratios against the better of EV and CP: %.3f times as fast at most, at a ratio of %.2f; with the best program too '
              || '%.2f to %.2f times', gain, x, (SELECT min(min(even_s, cp_s) / hap_s) FROM pair),
              (SELECT max(min(even_s, cp_s) / hap_s) FROM pair)),
       'the time is a sum of largest shares and largest loads, both linear in the ratios: for two speeds and this program it is least '
       || 'at an end, EV or CP, or level in between'
FROM sweet;
