-- HAP, Fig. 14: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
bar AS (
    SELECT *, max(ordinal)
    FROM result
    GROUP BY model, gpus, planner),
-- The gain that HAP's published planner predicts over data parallelism in its own cost model (run unchanged for 8 equal devices, batch
-- 32, 12 layers, collectives at 10.4 Gb/s).
published (model, times) AS (
    VALUES ('vgg19', 0.693438 / 0.080016), ('vit', 0.599970 / 0.599725), ('bert-base', 1.194590 / 1.127972),
           ('bert-moe', 3.560761 / 3.050810)),
-- HAP beside the fastest baseline (min picks the row).
versus AS (
    SELECT hap.model, hap.gpus, hap.lower_bound_s AS bound_s, hap.iteration_time_s AS s, hap.communication_s AS comm_s, hap.computation_s AS comp_s,
           rival.planner AS rival, min(rival.iteration_time_s) AS rival_s, rival.communication_s AS rival_comm_s,
           rival.computation_s AS rival_comp_s
    FROM bar AS hap JOIN bar AS rival ON rival.model = hap.model AND rival.gpus = hap.gpus
    WHERE hap.planner = 'hap' AND hap.status = 'ok' AND rival.planner <> 'hap' AND rival.status = 'ok'
    GROUP BY hap.model, hap.gpus),
by_size AS (
    SELECT model, group_concat(printf('%.2f at %d (%s)', rival_s / s, gpus, rival), ', ') AS list
    FROM (SELECT * FROM versus ORDER BY model, gpus)
    GROUP BY model),
judged AS (SELECT *, max(rival_s / s) FROM versus GROUP BY model)
SELECT model AS claim, rival_s / s AS ours, printf('by number of GPUs: %s', list) AS note,
       printf('at %d GPUs HAP waits %.2f s for communication and computes %.2f s, %s %.2f s and %.2f s', gpus, comm_s, comp_s, rival,
              rival_comm_s, rival_comp_s) ||
       CASE WHEN bound_s IS NULL THEN '' ELSE
           printf('; by the search''s bound no program that waits takes less than %.3f s, so that none is more than %.2f times as fast', bound_s, rival_s / bound_s) END ||
       CASE model WHEN 'vgg19' THEN '; where data parallelism and TAG wait for their all-reduces, too (column exposed), with collectives as the authors measured them (column collectives), or by one factor on the rates (column calibrated), it holds'
            WHEN 'bert-moe' THEN '; with collectives as the authors measured them (column collectives), which are slower than the link, it holds, and where HAP hides what it sends and ZeRO does not (column hidden)'
            ELSE '; where data parallelism waits for its all-reduces, too (column exposed), they are as fast or less than 5 % slower; kernels of data sheets (column kernels) do not bring them nearer. If HAP''s programs hid what they send and the baselines did not (column hidden), BERT-Base would hold, and ViT be beyond it' END ||
       printf('; HAP''s published planner, in its own cost model, predicts %.2f over DP (8 GPUs)', times) ||
       CASE model WHEN 'vit' THEN '. The paper contradicts itself: in Fig. 13 HAP and proportional data parallelism are similar on ViT, and on equal devices that is DP-EV'
            ELSE '' END AS reason
FROM judged JOIN by_size USING (model) JOIN published USING (model);
