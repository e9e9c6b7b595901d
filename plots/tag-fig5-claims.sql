-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
.read shared/tag-bars.sql
, tag AS (SELECT * FROM bar WHERE planner = 'tag' AND seat = 5 AND status = 'ok'),
own AS (SELECT * FROM bar WHERE planner = 'tag' AND seat = 6 AND status = 'ok'),
versus AS (
    SELECT rival.planner AS rival, tag.title, 100 * (rival.iteration_time_s / tag.iteration_time_s - 1) AS faster,
           100 * (rival.iteration_time_s / own.iteration_time_s - 1) AS own_faster
    FROM tag JOIN bar AS rival USING (panel) JOIN own USING (panel)
    WHERE rival.seat < 5 AND rival.status = 'ok'),
told AS (
    SELECT rival, min(faster) AS least, max(faster) AS most, min(own_faster) AS own_least, max(own_faster) AS own_most,
           group_concat(printf('%s %.0f', title, faster), ', ') AS list
    FROM versus GROUP BY rival),
name (claim, rival) AS (VALUES ('nccl', 'dp-nccl'), ('ncclp', 'dp-nccl-p'), ('horovod', 'horovod'), ('heterog', 'heterog'))
SELECT claim || '-least', least, printf('per cent by model: %s; Kilter''s own search: at least %.0f', list, own_least),
       'the search of the paper with uniform priors on inferred hardware (column gnn: with a network); where all-reduces are fused the '
       || 'paper''s gradients one by one have no lead to win back' FROM told JOIN name USING (rival)
UNION ALL
SELECT claim || '-most', most, printf('per cent by model: %s; Kilter''s own search: at most %.0f', list, own_most),
       'data parallelism here pays its all-reduces and nothing else that TensorFlow adds (columns links, calibrated); the tree search finds more '
       || 'with a network (column gnn); Sec. 5.3 gives the largest lead over DP-NCCL to VGG19, Table 8 to InceptionV3' FROM told JOIN name USING (rival)
UNION ALL
SELECT 'fastest', min(faster) >= 0, printf('least lead %.0f %% (%s), of Kilter''s own search %.0f %%', min(faster), rival || ' ' || title,
       (SELECT min(own_faster) FROM versus)),
       'tree search with uniform priors stays where its first action leads it; HeteroG''s space is searched by Kilter''s own search'
FROM versus HAVING count(*) > 0
UNION ALL
SELECT 'oom', (SELECT count(*) FROM bar WHERE panel = 5 AND seat < 3 AND status = 'oom') = 3
       AND (SELECT status FROM bar WHERE panel = 5 AND seat = 5) = 'ok',
       printf('%d of 3 do not fit, TAG: %s', (SELECT count(*) FROM bar WHERE panel = 5 AND seat < 3 AND status = 'oom'),
              (SELECT status FROM bar WHERE panel = 5 AND seat = 5)), 'Table 5 contradicts it: there data parallelism trains BERT-Large with two samples on each GTX 1080Ti, here it has one on each'
FROM (SELECT count(*) AS n FROM bar) WHERE n > 0;
