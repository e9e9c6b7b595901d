-- HAP, Fig. 2: one row per curve and point. Columns: seat of the curve, its name, computation / communication under even ratios
-- (the P100s compute longest), global batch, iteration time relative to even ratios, seconds.
WITH
curve (seat, planner, ratios, name) AS (
    VALUES (0, 'deepspeed', 'best', 'best ratios'), (1, 'deepspeed', 'even', 'EV: even'),
           (2, 'deepspeed', 'proportional', 'CP: proportional to speed'), (3, 'hap', 'own', 'best ratios and program')),
point AS (
    SELECT *, CAST(substr(model, instr(model, 'global_batch=') + 13) AS INTEGER) AS batch
    FROM result JOIN curve ON curve.planner = result.planner AND curve.ratios = json_extract(options, '$.ratios')
    WHERE experiment = 'hap-fig2' AND status = 'ok'
    GROUP BY seat, model HAVING max(result.ordinal))
SELECT point.seat, point.name, even.computation_s / even.communication_s, point.batch,
       point.iteration_time_s / even.iteration_time_s, point.iteration_time_s
FROM point JOIN point AS even ON even.seat = 1 AND even.batch = point.batch
ORDER BY point.seat, point.batch;
