-- HAP, Fig. 17: one row per curve and point. Columns: seat of the curve, its name, experts, -, seconds. A padded model has as many
-- sequences as one with the experts that count: 16 per expert.
WITH
curve (seat, planner, name) AS (VALUES (2, 'deepspeed', 'DeepSpeed, padded to a multiple of 4'), (3, 'hap', 'HAP')),
run AS (
    SELECT seat, name, iteration_time_s AS s, CAST(substr(model, instr(model, 'global_batch=') + 13) AS INTEGER) / 16 AS experts,
           CAST(substr(model, instr(model, 'experts=') + 8) AS INTEGER) AS made
    FROM result JOIN curve USING (planner)
    WHERE experiment = 'hap-fig17' AND status = 'ok'
    GROUP BY seat, model HAVING max(result.ordinal))
SELECT seat, name, experts, NULL, s
FROM run
WHERE made = CASE seat WHEN 2 THEN (experts + 3) / 4 * 4 ELSE experts END
UNION ALL
SELECT 0, 'HAP, padded to a multiple of 4', experts, NULL, s
FROM run
WHERE seat = 3 AND made = (experts + 3) / 4 * 4
UNION ALL
SELECT -1, 'paper', experts, 'largest', s
FROM (SELECT padded.experts AS experts, padded.s AS s, max(padded.s / own.s)
      FROM run AS padded JOIN run AS own USING (experts)
      WHERE padded.seat = 2 AND padded.made = (padded.experts + 3) / 4 * 4 AND own.seat = 3 AND own.made = own.experts)
WHERE experts IS NOT NULL
ORDER BY 1, 3;
