-- AMP, Fig. 2: our side of the claims in data/paper/amp.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/amp-fig2.sql
spearman AS (
    SELECT panel, title, 1 - 6.0 * sum((x - place) * (x - place)) / (max(n) * (max(n) * max(n) - 1.0)) AS rho,
           min(CASE place WHEN 1 THEN rank END) AS best
    FROM ranked GROUP BY panel),
list AS (
    SELECT group_concat(printf('%s: best is number %d, Spearman %.2f', title, best, rho), '; ') AS text, max(best) AS worst, min(rho) AS least
    FROM (SELECT * FROM spearman ORDER BY panel))
SELECT 'first' AS claim, worst <= 3 AS ours, text AS note, 'the first candidates take nearly the same time, so small differences order them' AS reason
FROM list WHERE text IS NOT NULL
UNION ALL
SELECT 'spearman', least >= 0.5, text, 'predicted by AMP''s profile, in which tensor parallelism hardly makes a layer faster, and simulated by rates, where it divides its time; with rates in both (column rates) or the profile in both (column profile) it is at least 0.5. AMP''s trials without 2-way tensor parallelism are nearer to rates (off by 25 percent on average) than to the profile (42 percent)'
FROM list WHERE text IS NOT NULL;
