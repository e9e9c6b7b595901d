-- HAP, Fig. 17: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
run AS (
    SELECT planner, iteration_time_s AS s, communication_s AS comm_s, computation_s AS comp_s,
           CAST(substr(model, instr(model, 'global_batch=') + 13) AS INTEGER) / 16 AS experts,
           CAST(substr(model, instr(model, 'experts=') + 8) AS INTEGER) AS made
    FROM result WHERE experiment = 'hap-fig17' AND status = 'ok' GROUP BY planner, model HAVING max(ordinal)),
versus AS (
    SELECT hap.experts AS experts, hap.s AS s, hap.comm_s AS comm_s, hap.comp_s AS comp_s, padded.s AS padded_s,
           padded.comm_s AS padded_comm_s, padded.comp_s AS padded_comp_s, padded.s / hap.s AS faster,
           hap.s / hap.experts AS each_s, padded.s / padded.experts AS padded_each_s
    FROM run AS hap JOIN run AS padded USING (experts)
    WHERE hap.planner = 'hap' AND hap.made = experts AND padded.planner = 'deepspeed' AND padded.made = (experts + 3) / 4 * 4),
list AS (SELECT group_concat(printf('%.2f at %d', faster, experts), ', ') AS text FROM (SELECT * FROM versus ORDER BY experts)),
best AS (SELECT * FROM versus ORDER BY faster DESC LIMIT 1),
spread AS (SELECT max(each_s) / min(each_s) AS hap, max(padded_each_s) / min(padded_each_s) AS padded FROM versus)
SELECT 'largest' AS claim, faster AS ours, 'by number of experts: ' || text AS note,
       printf('with %d experts HAP communicates %.2f s and computes %.2f s, DeepSpeed %.2f s and %.2f s; HAP names neither the link nor '
              || 'the A100''s speed, which bound computation alone to (4 + 1) / 2 = 2.5', experts, comm_s, comp_s, padded_comm_s,
              padded_comp_s) AS reason
FROM best, list
UNION ALL
SELECT 'smooth', hap < padded, printf('time an expert, largest over smallest: HAP %.2f, DeepSpeed %.2f', hap, padded),
       'whole experts are uneven too: of few of them a fast GPU gets more than its share or less'
FROM spread WHERE hap IS NOT NULL;
