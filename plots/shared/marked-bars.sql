-- Bars in the columns of hap-bars.gp, with the marks of marks.sql.
SELECT bar.panel, title, dense_rank() OVER (ORDER BY bar.place) - 1 AS "group", bar.place, seat, name,
       dense_rank() OVER (ORDER BY seat) - 1 AS slot, (SELECT count(DISTINCT seat) FROM bar) AS slots,
       status, iteration_time_s, claim, base, bar.ordinal AS rows
FROM bar LEFT JOIN mark ON mark.panel = bar.panel AND mark.place = bar.place AND seat = 0
ORDER BY bar.panel, bar.place, seat;
