-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
,
.read shared/tag-tab7.sql
, pair AS (
    SELECT panel, lower(title) AS model, pure.n AS pure, net.n AS net, own.n AS own, pure.topologies AS topologies, pure.n / net.n AS fewer
    FROM mean AS pure JOIN mean AS net USING (panel, title) JOIN mean AS own USING (panel, title)
    WHERE pure.seat = 1 AND net.seat = 5 AND own.seat = 6),
why (reason) AS (
    VALUES ('a network of 14,587 weights trained for minutes; TAG''s has a thousand times as many and was trained for two days. Without any network Kilter''s search needs the fewest tries, so it is the default'))
SELECT model, fewer, printf('uniform %.1f, network %.1f, Kilter''s search %.1f, on %d topologies', pure, net, own, topologies), reason FROM pair, why
UNION ALL
SELECT 'all-fewer', min(fewer) > 1, group_concat(printf('%s %.2f', model, fewer), ', '), reason FROM pair, why HAVING count(*) > 0
UNION ALL
SELECT 'mean', exp(avg(ln(fewer))), group_concat(printf('%s %.2f', model, fewer), ', '), reason FROM pair, why HAVING count(*) > 0;
