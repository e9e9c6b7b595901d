-- Methods and their strategies: after `paper` (seat, name, the best and the average of its strategies in seconds, the deviation of these)
-- and `strategy` (seat, s); `base` (seat) is the method to whose best everything is relative.
method AS (
    SELECT seat, min(s) AS best, avg(s) AS mean, sqrt(max(0, avg(s * s) - avg(s) * avg(s))) AS deviation, count(*) AS n, group_concat(ordinal, ' ') AS ordinals
    FROM strategy WHERE seat IS NOT NULL GROUP BY seat),
unit AS (SELECT method.best AS ours, paper.best AS theirs FROM method JOIN paper USING (seat) JOIN base USING (seat))
SELECT seat, name, method.best / ours, method.mean / ours, paper.best / theirs, paper.mean / theirs, n,
       method.deviation / ours, paper.deviation / theirs, printf('%.2f s', method.best), printf('%.2f s', method.mean), ordinals AS rows
FROM method JOIN paper USING (seat), unit
ORDER BY seat;
