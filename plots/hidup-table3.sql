-- HiDup, Table 3: two rows per place, in the columns of hap-bars.gp: the paper's peak and ours, GB.
WITH
.read shared/hidup-table3.sql
SELECT place AS panel, label AS title, seat AS "group", name AS label, kind AS seat, CASE kind WHEN 0 THEN 'measured (paper)' ELSE 'ours' END AS name,
       kind AS slot, 2 AS slots, status, CASE kind WHEN 0 THEN gb ELSE ours END AS gb, NULL AS claim, NULL AS base, ordinal AS rows
FROM peak JOIN (SELECT 0 AS kind UNION ALL SELECT 1)
ORDER BY panel, "group", kind;
