-- HAP, Fig. 2: one row per curve and point. Columns: seat of the curve, its name, computation / communication under even ratios
-- (the P100s compute longest), hidden size, iteration time relative to even ratios, seconds.
WITH
.read shared/hap-fig2.sql
, curve (seat, mix, name) AS (
    VALUES (0, 0.5, 'halfway between'), (1, 0.0, 'EV: even'), (2, 1.0, 'CP: proportional to speed'))
SELECT seat, name, even.x, point.hidden, point.s / even.s, point.s
FROM point JOIN curve USING (mix) JOIN point AS even ON even.mix = 0 AND even.hidden = point.hidden
ORDER BY seat, point.hidden;
