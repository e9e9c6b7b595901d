-- HAP, Fig. 13: our side of the claims in data/paper/hap.csv (columns claim, ours, note).
WITH
bar AS (
    SELECT *, max(rowid)
    FROM result
    WHERE cluster IN ('hap-8', 'hap-16', 'hap-32', 'hap-64') AND fidelity = 'stage' AND granularity = 'machine'
    GROUP BY model, gpus, planner),
hap AS (SELECT * FROM bar WHERE planner = 'hap' AND status = 'ok'),
rival AS (SELECT * FROM bar WHERE planner <> 'hap' AND status = 'ok'),
-- The fastest of the rivals that a claim is about, beside HAP (min picks the row).
versus AS (
    SELECT pick.claim, model, gpus, hap.iteration_time_s AS ours_s, hap.communication_s AS ours_comm_s,
           rival.planner, min(rival.iteration_time_s) AS theirs_s, rival.communication_s AS theirs_comm_s
    FROM (SELECT 'vgg19-32' AS claim, 'vgg19' AS model, 'dp-ev dp-cp' AS rivals
          UNION ALL SELECT 'vit-dp-cp', 'vit', 'dp-cp'
          UNION ALL SELECT 'bert-base-64', 'bert-base', 'dp-ev dp-cp deepspeed tag'
          UNION ALL SELECT 'bert-moe-deepspeed', 'bert-moe', 'deepspeed') AS pick
         JOIN hap USING (model)
         JOIN rival USING (model, gpus)
    WHERE ' ' || pick.rivals || ' ' LIKE '% ' || rival.planner || ' %'
    GROUP BY pick.claim, model, gpus),
by_size AS (
    SELECT claim, group_concat(printf('%.2f at %d', theirs_s / ours_s, gpus), ', ') AS list
    FROM (SELECT * FROM versus ORDER BY claim, gpus)
    GROUP BY claim),
-- The size that each claim is judged at.
judged AS (
    SELECT * FROM versus WHERE (claim, gpus) IN (('vgg19-32', 32), ('bert-base-64', 64))
    UNION ALL
    SELECT claim, model, gpus, ours_s, ours_comm_s, planner, theirs_s, theirs_comm_s
    FROM (SELECT *, max(max(theirs_s / ours_s, ours_s / theirs_s)) FROM versus
          WHERE claim IN ('vit-dp-cp', 'bert-moe-deepspeed') GROUP BY claim))
SELECT claim, theirs_s / ours_s AS ours,
       printf('at %d GPUs: HAP %.3f s, %.0f %% of it communication; %s %.3f s, %.0f %%. By GPUs: %s', gpus,
              ours_s, 100 * ours_comm_s / ours_s, planner, theirs_s, 100 * theirs_comm_s / theirs_s, list) AS note
FROM judged JOIN by_size USING (claim)
UNION ALL
SELECT 'bert-moe-dp-oom', avg(status = 'oom'),
       group_concat(printf('%s at %d: %s', planner, gpus,
                           CASE status WHEN 'oom' THEN printf('needs %.1f GiB', peak_memory_bytes / 1073741824.0)
                           ELSE printf('fits in %.1f GiB', peak_memory_bytes / 1073741824.0) END), ', ')
FROM (SELECT * FROM bar WHERE model = 'bert-moe' AND planner IN ('dp-ev', 'dp-cp') ORDER BY planner DESC, gpus)
HAVING count(*) > 0;
