-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
,
.read shared/tag-iterations.sql
, pair AS ( -- column ahead has a search with that network, column unseen none
    SELECT panel, lower(title) AS model, topologies, uniform, own, uniform / net AS fewer, net
    FROM (SELECT *, CASE (SELECT max(seat * (seat IN (5, 7))) FROM run WHERE experiment = 'tag-tab7') WHEN 5 THEN visits WHEN 7 THEN ahead ELSE unseen END AS net
          FROM iterations)
    WHERE EXISTS (SELECT * FROM run WHERE experiment = 'tag-tab7')),
why (reason) AS (
    VALUES ('lessons: a network of the same size that learnt from looking one step ahead (column ahead) needs fewer, also for a model that it never saw (column unseen). '
            || 'The 14,587 weights learnt for minutes, TAG''s, a thousand times as many, for two days. Without any network Kilter''s search needs the fewest tries, so it is the default'))
SELECT model, fewer, printf('uniform %.1f, network %.1f, Kilter''s search %.1f, on %d topologies', uniform, net, own, topologies), reason FROM pair, why
UNION ALL
SELECT 'all-fewer', min(fewer) > 1.005, group_concat(printf('%s %.2f', model, fewer), ', '), reason FROM pair, why HAVING count(*) > 0
UNION ALL
SELECT 'mean', exp(avg(ln(fewer))), group_concat(printf('%s %.2f', model, fewer), ', '), reason FROM pair, why HAVING count(*) > 0;
