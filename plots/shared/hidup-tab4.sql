-- The communication and computation of each planner's GPUs, and what overlaps.
bar AS (
    SELECT *, sum(json_extract(device.value, '$.n') * json_extract(device.value, '$.hidden_s')) AS hidden_s,
           sum(json_extract(device.value, '$.n') *
               (json_extract(device.value, '$.hidden_s') + json_extract(device.value, '$.communication_s'))) AS all_comm_s,
           sum(json_extract(device.value, '$.n') * json_extract(device.value, '$.busy_s')) AS all_comp_s, max(result.ordinal)
    FROM result, json_each(detail, '$.devices') AS device
    WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-1x4', 'hidup-2x4-100', 'hidup-2x4-30') AND model = 'bert-sgmoe' AND status = 'ok' AND result.ordinal IN (
        SELECT max(ordinal) FROM result WHERE fidelity = 'flow' AND granularity = 'gpu' AND cluster IN ('hidup-1x4', 'hidup-2x4-100', 'hidup-2x4-30') AND model = 'bert-sgmoe' GROUP BY cluster, planner)
    GROUP BY cluster, planner)
