-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
, pair AS (
    SELECT tag.panel, tag.title AS title, other.search_time_s / tag.search_time_s AS slower, tag.search_time_s AS s
    FROM run AS tag JOIN run AS other USING (panel, experiment)
    WHERE experiment = 'tag-fig8' AND tag.seat = 5 AND other.seat = 4)
SELECT 'heterog', exp(avg(ln(slower))), 'seconds of TAG with its network: ' || group_concat(printf('%s %.1f', title, s), ', '),
       'HeteroG trains its network for each topology, which takes most of its time; here both are searches on one evaluator, and asking the network takes longer than evaluating a strategy'
FROM pair HAVING count(*) > 0;
