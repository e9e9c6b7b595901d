-- HiDup, Table 4: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hidup-tab4.sql
, name (claim, cluster, paper_comm_s, paper_comp_s) AS (
    VALUES ('single', 'hidup-1x4', 0.030, 0.295), ('two-100', 'hidup-2x4-100', 0.152, 0.309), ('two-30', 'hidup-2x4-30', 0.443, 0.302))
SELECT claim, hidden_s / min(all_comm_s, all_comp_s), printf('%.3f s an iteration, a GPU communicates %.3f s and computes %.3f s',
              iteration_time_s, all_comm_s / gpus, all_comp_s / gpus),
       printf('there %.3f and %.3f s: about as long. Between two machines the backward hid little in the paper, on a single one it did, and its published trace of 4 GPUs hides 0.66 to 0.77 of it',
              paper_comm_s, paper_comp_s)
FROM bar JOIN name USING (cluster) WHERE planner = 'hidup';
