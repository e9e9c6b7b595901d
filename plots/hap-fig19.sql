-- HAP, Fig. 19: one row per curve and point. Columns: seat of the curve, its name, layers, iteration time, seconds of search. The
-- latest row counts. HAP's published program was measured on 2 cores, unchanged, with its ratio LP (medians of 3 runs).
WITH
curve (seat, search, name) AS (
    VALUES (2, 'reference', 'HAP''s search, Fig. 10, in Kilter'), (3, 'exact', 'Kilter''s exact search, a larger space')),
artifact (layers, s) AS (
    VALUES (4, 0.119), (8, 0.420), (12, 0.920), (16, 1.559), (20, 2.514), (24, 3.722)),
point AS (
    SELECT *, CAST(substr(model, instr(model, 'layers=') + 7) AS INTEGER) AS layers, max(result.ordinal)
    FROM result JOIN curve ON curve.search = json_extract(options, '$.search')
    WHERE experiment = 'hap-fig19' AND status = 'ok'
    GROUP BY seat, layers)
SELECT seat, name, layers, iteration_time_s, search_time_s FROM point
UNION ALL
SELECT 1, 'HAP''s published program (on 2 cores)', layers, 0, s FROM artifact
ORDER BY 1, 3;
