-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-learning.sql
, last AS (SELECT seat, name, loss FROM learning WHERE epoch = (SELECT max(epoch) FROM learning)),
pair (claim, fed, plain) AS (
    SELECT 'learnt', a.loss, b.loss FROM last AS a, last AS b WHERE a.seat = 0 AND b.seat = 2
    UNION ALL SELECT 'held-out', a.loss, b.loss FROM last AS a, last AS b WHERE a.seat = 1 AND b.seat = 3)
SELECT claim, fed < plain, printf('%.3f with feedback, %.3f without, in the last epoch', fed, plain),
       'unknown: two trainings, on 431 and on 432 lessons, both have it lower without feedback by less than 0.02; the other features and the strategy say most of what the feedback says'
FROM pair WHERE EXISTS (SELECT * FROM result WHERE experiment = 'tag-fig7');
