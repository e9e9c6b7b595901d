-- HiDup, Table 1: one row a bar, in the columns of hap-bars.gp: millions of parameters.
WITH
.read shared/hidup-tab1.sql
SELECT 0 AS panel, '8 and 64 GPUs' AS title, place AS "group", label, gpus > 8 AS seat, printf('%d GPUs', gpus) AS name, gpus > 8 AS slot, 2 AS slots,
       'ok' AS status, n, 'published' AS claim, base + slope * gpus AS base, ordinal AS rows
FROM cell ORDER BY place, seat;
