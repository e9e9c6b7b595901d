-- What a GPU does in an iteration by planner and cluster, and the paper's Table 4: wall clock, computation and communication in
-- seconds, and the part of the smaller one of the last two that overlaps.
bar AS (
    SELECT *, sum(json_extract(device.value, '$.n') * json_extract(device.value, '$.hidden_s')) AS hidden_s,
           sum(json_extract(device.value, '$.n') *
               (json_extract(device.value, '$.hidden_s') + json_extract(device.value, '$.communication_s'))) AS all_comm_s,
           sum(json_extract(device.value, '$.n') * json_extract(device.value, '$.busy_s')) AS all_comp_s, max(result.ordinal)
    FROM result, json_each(detail, '$.devices') AS device
    WHERE experiment = 'hidup-tab4' AND status = 'ok'
    GROUP BY cluster, planner),
paper (cluster, planner, wall_s, comp_s, comm_s, overlap) AS (
    VALUES ('hidup-1x4', 'hidup', 0.2972, 0.2948, 0.0297, 0.9192), ('hidup-1x4', 'deepspeed', 0.3988, 0.3531, 0.0282, 0),
           ('hidup-1x4', 'fastmoe', 0.3492, 0.2182, 0.1193, 0),
           ('hidup-2x4-100', 'hidup', 0.3985, 0.3088, 0.1523, 0.4110), ('hidup-2x4-100', 'deepspeed', 0.4993, 0.3479, 0.1347, 0),
           ('hidup-2x4-100', 'fastmoe', 0.6971, 0.2252, 0.4605, 0),
           ('hidup-2x4-30', 'hidup', 0.6657, 0.3021, 0.4432, 0.2635), ('hidup-2x4-30', 'deepspeed', 0.8251, 0.3469, 0.4585, 0),
           ('hidup-2x4-30', 'fastmoe', 0.7563, 0.2300, 0.5117, 0)),
measure (measure) AS (VALUES (0), (1), (2), (3)),
cell AS (
    SELECT cluster, planner, measure, CASE measure WHEN 0 THEN iteration_time_s WHEN 1 THEN all_comp_s / gpus WHEN 2 THEN all_comm_s / gpus
               ELSE hidden_s / min(all_comm_s, all_comp_s) END AS ours,
           CASE measure WHEN 0 THEN wall_s WHEN 1 THEN comp_s WHEN 2 THEN comm_s ELSE overlap END AS theirs, status, ordinal
    FROM bar JOIN paper USING (cluster, planner) JOIN measure)
