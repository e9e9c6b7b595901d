-- HAP, Fig. 15: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
piece (seat, planner, ratios, collectives) AS (
    VALUES (0, 'dp-ev', 'own', 'both'), (1, 'hap', 'even', 'padded'), (2, 'hap', 'own', 'padded'), (3, 'hap', 'own', 'both')),
point AS (
    SELECT model, seat, coalesce(1 / iteration_time_s, 0) AS throughput
    FROM result JOIN piece ON piece.planner = result.planner AND piece.ratios = json_extract(options, '$.ratios')
                          AND piece.collectives = json_extract(options, '$.collectives')
    WHERE experiment = 'hap-fig15'
    GROUP BY model, seat HAVING max(result.ordinal)),
gain AS ( -- of each piece, as a part of the throughput of all together
    SELECT q.model AS model, (q.throughput - dp.throughput) / c.throughput AS q, (b.throughput - q.throughput) / c.throughput AS b,
           (c.throughput - b.throughput) / c.throughput AS c
    FROM point AS dp JOIN point AS q USING (model) JOIN point AS b USING (model) JOIN point AS c USING (model)
    WHERE dp.seat = 0 AND q.seat = 1 AND b.seat = 2 AND c.seat = 3 AND c.throughput > 0),
list AS (
    SELECT group_concat(printf('%s Q %.0f %%, B %.0f %%, C %.0f %%', model, 100 * q, 100 * b, 100 * c), '; ') AS text
    FROM (SELECT * FROM gain ORDER BY model))
SELECT 'q-greatest' AS claim, sum(q) > max(sum(b), sum(c)) AS ours, 'of the throughput of all: ' || text AS note,
       'where data parallelism is the best program, only the ratios gain' AS reason
FROM gain, list HAVING count(*) > 0
UNION ALL
SELECT 'c-small', max(abs(c)), 'of the throughput of all: ' || text,
       'the alternation of program and ratios is no joint optimum: allowing more collectives may lead it elsewhere'
FROM gain, list HAVING count(*) > 0;
