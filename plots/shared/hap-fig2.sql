-- One row per hidden size and part of proportional ratios in the mix: 0 is EV, 1 is CP.
point AS (
    SELECT CAST(json_extract(options, '$.mix') AS REAL) AS mix, CAST(substr(model, instr(model, 'hidden=') + 7) AS INTEGER) AS hidden,
           iteration_time_s AS s, computation_s / communication_s AS x
    FROM result WHERE experiment = 'hap-fig2' AND status = 'ok' GROUP BY mix, model HAVING max(ordinal))
