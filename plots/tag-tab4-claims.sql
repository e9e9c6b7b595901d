-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
seat (seat, planner, search, name) AS (VALUES (5, 'tag', 'mcts', 'TAG'), (6, 'tag', 'own', 'Kilter')),
.read shared/tag-bars.sql
, tag AS (
    SELECT *, json_extract(detail, '$.placement.devices_an_op.v100') AS v100, json_extract(detail, '$.placement.devices_an_op.gtx1080ti') AS gtx,
           json_extract(detail, '$.placement.devices_an_op.p100') AS p100, json_extract(detail, '$.placement.served') AS served,
           json_extract(detail, '$.placement.all_reduced') AS reduced,
           (SELECT coalesce(sum(value), 0) FROM json_each(detail, '$.placement.duplicated')) AS duplicated
    FROM bar WHERE seat = 5),
own AS (SELECT *, json_extract(detail, '$.placement.devices_an_op.p100') AS p100 FROM bar WHERE seat = 6),
cause (text) AS (VALUES ('by the authors'' own measurements of all-reduces (column measured) servers sum nearly all of InceptionV3''s and ResNet101''s gradients, as in '
    || 'the paper; by a data sheet''s NVLink the V100 machine alone is fastest. With uniform priors (column uniform) the tree search ends elsewhere; many strategies differ by little in time'))
SELECT 'resnet-all', v100 + gtx + p100, printf('%.1f V100, %.1f GTX 1080Ti, %.1f P100', v100, gtx, p100), text FROM tag, cause WHERE panel = 1
UNION ALL
SELECT 'p100', max(p100), group_concat(printf('%s %.1f', title, p100), ', '), text FROM tag, cause WHERE panel IN (0, 2, 3) HAVING count(*) > 0
UNION ALL
SELECT 'bert-large', v100 + gtx + p100, printf('%.1f V100, %.1f GTX 1080Ti, %.1f P100', v100, gtx, p100), text FROM tag, cause WHERE panel = 5
UNION ALL
SELECT 'duplicate', sum(duplicated), group_concat(printf('%s %d', title, duplicated), ', '), text FROM tag, cause HAVING count(*) > 0
UNION ALL
SELECT 'mixed', sum(served > 0 AND reduced > 0), group_concat(printf('%s %d by servers, %d by all-reduces', title, served, reduced), ', ') ||
       '; the paper''s own ResNet101 sums to 90 %: 67 and 23', text FROM tag, cause HAVING count(*) > 0;
