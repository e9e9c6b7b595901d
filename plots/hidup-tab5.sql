-- HiDup, Table 5: one row a bar, in the columns of hap-bars.gp; what bars measure is the time of an iteration over that with right
-- estimates, averaged over draws.
WITH
.read shared/hidup-tab5.sql
place (place, noise, communication, label) AS (
    VALUES (0, 0.2, 0, 'noise 20'), (1, 0.5, 0, 'noise 50'), (2, 0, 0.2, 'comm. +20'), (3, 0, 0.5, 'comm. +50'),
           (4, 0, -0.2, 'comm. −20'), (5, 0, -0.5, 'comm. −50'))
SELECT 0, 'BERT-SGMoE', place AS "group", label, 0 AS seat, 'mean of ten draws' AS name, 0 AS slot, 1 AS slots,
       CASE WHEN fits = n THEN 'ok' ELSE 'oom' END AS status, ratio
FROM mean JOIN place USING (noise, communication)
ORDER BY place;
