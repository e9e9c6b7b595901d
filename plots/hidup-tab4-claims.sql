-- HiDup, Table 4: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hidup-tab4.sql
, name (claim, cluster, paper_comm_s, paper_comp_s) AS (
    VALUES ('single', 'hidup-1x4', 0.030, 0.295), ('two-100', 'hidup-2x4-100', 0.152, 0.309), ('two-30', 'hidup-2x4-30', 0.443, 0.302))
SELECT claim, hidden_s / min(all_comm_s, all_comp_s), printf('%.3f s per iteration, a GPU communicates %.3f s and computes %.3f s',
              iteration_time_s, all_comm_s / gpus, all_comp_s / gpus),
       printf('there %.3f and %.3f s: about as long. Where only the forward pass overlaps (column calibrated) it is 0.30 and 0.29: between two machines the backward hid little in the paper, on a single one it did, and its published trace of 4 GPUs hides 0.66 to 0.77 of it',
              paper_comm_s, paper_comp_s)
FROM bar JOIN name USING (cluster) WHERE planner = 'hidup'
UNION ALL
SELECT CASE measure WHEN 0 THEN 'wall' WHEN 1 THEN 'computation' ELSE 'communication' END, avg(abs(ours / theirs - 1)),
       'ours and theirs (s): ' || group_concat(printf('%s on %s %.3f, %.3f', planner, cluster, ours, theirs), '; '),
       printf('ours over theirs, the mean of the clusters: HiDup %.2f, DeepSpeed %.2f, FastMoE %.2f: one %s does not fit all three',
              avg(CASE planner WHEN 'hidup' THEN ours / theirs END), avg(CASE planner WHEN 'deepspeed' THEN ours / theirs END),
              avg(CASE planner WHEN 'fastmoe' THEN ours / theirs END),
              CASE measure WHEN 1 THEN 'rate of the GPUs' WHEN 2 THEN 'rate of the links' ELSE 'cluster' END) ||
       CASE measure WHEN 1 THEN '; each has that of its first column here' WHEN 2 THEN '; FastMoE waits for unbalanced gates: without it (column balanced) it is 0.17'
                    ELSE '; FastMoE waits for unbalanced gates: without it (column balanced) it is 0.09 and holds' END
FROM cell WHERE measure < 3 AND NOT (measure = 1 AND cluster = 'hidup-1x4') -- from which the rates are
GROUP BY measure HAVING count(DISTINCT cluster) = 3 - (measure = 1) AND count(*) % (3 - (measure = 1)) = 0
UNION ALL
SELECT 'fastest', max(place) = 1, group_concat(printf('%s: %.3f s', cluster, ours), ', '), 'FastMoE computes in 0.84 of our time on one machine, by its first column, and waits 0.12 s for unbalanced gates there, which ours does not: without it (column balanced) the claim holds'
FROM (SELECT *, rank() OVER (PARTITION BY cluster ORDER BY ours) AS place FROM cell WHERE measure = 0)
WHERE planner = 'hidup' HAVING count(*) = 3;
