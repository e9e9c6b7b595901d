-- HiDup, Table 5: one row per bar, in the columns of hap-bars.gp; bars measure the time of an iteration over that with right
-- estimates, averaged over draws.
WITH
.read shared/hidup-tab5.sql
place (place, noise, communication, label, claim) AS (
    VALUES (0, 0.2, 0, 'noise 20', 'random-20'), (1, 0.5, 0, 'noise 50', 'random-50'), (2, 0, 0.2, 'comm. +20', 'more-20'), (3, 0, 0.5, 'comm. +50', 'more-50'),
           (4, 0, -0.2, 'comm. −20', 'less-20'), (5, 0, -0.5, 'comm. −50', 'less-50'))
SELECT 0, 'BERT-SGMoE', place AS "group", label, 0 AS seat, 'mean of ten draws' AS name, 0 AS slot, 1 AS slots,
       CASE WHEN fits = n THEN 'ok' ELSE 'oom' END AS status, ratio, claim, NULL AS base, ordinals AS rows
FROM mean JOIN place USING (noise, communication)
ORDER BY place;
