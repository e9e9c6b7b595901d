-- AMP, Fig. 3: one row per curve and point. Columns: seat of the curve, its name, heterogeneity, seconds of AMP's plan, its speed-up.
-- Heterogeneity, Eq. 9: FLOPs of a narrow layer over those of a wide one. A layer of width h on t tokens that attend to a: 24 h^2 t of
-- matrices and 4 h t a of attention; wide: 81 tokens of 1024; narrow: 324 windows of 16 u tokens of 16.
WITH
curve (seat, balance, name) AS (VALUES (2, 'layers', 'over equal numbers of layers'), (3, 'parameters', 'over equal parameters')),
point AS (
    SELECT planner, coalesce(json_extract(options, '$.balance'), 'layers') AS balance,
           CAST(substr(model, instr(model, 'upsample=') + 9) AS INTEGER) AS u, iteration_time_s AS s, max(ordinal)
    FROM result WHERE experiment = 'amp-fig3' AND status = 'ok' GROUP BY planner, balance, u),
pair AS (
    SELECT u, even.balance AS balance, even.s / amp.s AS gain, amp.s AS s
    FROM point AS even JOIN point AS amp USING (u) WHERE even.planner = 'megatron' AND amp.planner = 'amp')
SELECT seat, name, (24.0 * 16 * 16 + 4.0 * 16 * 16 * u) * 324 * 16 * u / ((24.0 * 1024 * 1024 + 4.0 * 1024 * 81) * 81), s, gain
FROM pair JOIN curve USING (balance)
ORDER BY 1, 3;
