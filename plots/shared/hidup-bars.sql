-- Bars in the columns of hap-bars.gp.
SELECT panel, title, dense_rank() OVER (ORDER BY place) - 1 AS "group", place, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s
FROM bar
ORDER BY panel, place, seat;
