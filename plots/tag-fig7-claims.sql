-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-learning.sql
, last AS (SELECT max(CASE seat WHEN 0 THEN loss END) AS fed, max(CASE seat WHEN 2 THEN loss END) AS plain,
                  max(CASE seat WHEN 1 THEN loss END) AS fed_out, max(CASE seat WHEN 3 THEN loss END) AS plain_out
           FROM learning WHERE epoch = (SELECT max(epoch) FROM learning))
SELECT 'learnt', fed < plain, printf('%.3f with feedback, %.3f without, in the last epoch; on lessons held out, of which the paper says nothing, %.3f and %.3f',
                                     fed, plain, fed_out, plain_out), 'few lessons' AS reason
FROM last WHERE EXISTS (SELECT * FROM result WHERE experiment = 'tag-fig7');
