-- HAP, Fig. 16: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT model, cluster, gpus / iteration_time_s AS throughput, communication_s, iteration_time_s AS s
    FROM result WHERE experiment = 'hap-fig16' AND status = 'ok' GROUP BY model, cluster HAVING max(ordinal)),
versus AS (
    SELECT whole.model AS model, whole.throughput / (fast.throughput + slow.throughput) AS part, whole.communication_s AS comm_s,
           fast.communication_s AS fast_comm_s, slow.communication_s AS slow_comm_s, whole.s AS s, fast.s AS fast_s, slow.s AS slow_s
    FROM point AS whole JOIN point AS fast USING (model) JOIN point AS slow USING (model)
    WHERE whole.cluster = 'published-hap-64' AND fast.cluster = 'published-hap-v100-16' AND slow.cluster = 'published-hap-p100x6-48'),
list AS (SELECT group_concat(printf('%.2f %s', part, model), ', ') AS text FROM (SELECT * FROM versus ORDER BY part)),
low AS (SELECT * FROM versus ORDER BY part LIMIT 1),
high AS (SELECT * FROM versus ORDER BY part DESC LIMIT 1)
SELECT 'lowest' AS claim, part AS ours, 'throughput of HAP over concurrent: ' || text AS note,
       printf('%s communicates %.3f of %.3f s on all machines, %.3f of %.3f s on the 2 V100 machines alone and %.3f of %.3f s on the 6 '
              || 'P100 machines, all planned by HAP; BERT-MoE is larger on all (128 experts) than on the parts (32 and 96). With 96 experts wherever it is trained (column same) the claim holds', model, comm_s, s, fast_comm_s, fast_s, slow_comm_s, slow_s) AS reason
FROM low, list
UNION ALL
SELECT 'highest', part, 'throughput of HAP over concurrent: ' || text,
       printf('%s communicates %.3f of %.3f s on all machines, %.3f of %.3f s on the 2 V100 machines alone and %.3f of %.3f s on the 6 '
              || 'P100 machines', model, comm_s, s, fast_comm_s, fast_s, slow_comm_s, slow_s)
FROM high, list
UNION ALL
SELECT 'vgg19-less', max(CASE model WHEN 'vgg19' THEN part END) < min(CASE WHEN model IN ('vit', 'bert-base') THEN part END), 'from the lowest: ' || text,
       'its convolutions fill more devices as well as ViT''s and BERT-Base''s ops do'
FROM versus, list HAVING count(*) = 4;
