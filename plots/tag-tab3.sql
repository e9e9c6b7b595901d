-- TAG, Table 3: one row per bar, in the columns of hap-bars.gp: MiB of parameters in single precision.
WITH
.read shared/tag-panels.sql
.read shared/tag-tab3.sql
SELECT 0 AS panel, 'in single precision' AS title, panel AS "group", title AS label, 0 AS seat, 'here' AS name, 0 AS slot, 1 AS slots,
       'ok' AS status, n, 'published' AS claim, mib AS base, ordinal AS rows
FROM cell ORDER BY panel;
