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
    FROM bar WHERE seat = (SELECT min(seat) FROM bar)),
own AS (SELECT *, json_extract(detail, '$.placement.devices_an_op.p100') AS p100 FROM bar WHERE seat = 6),
paper (panel, v100, gtx, p100, served, reduced) AS (
    VALUES (0, 4.0, 8.0, 0.0, 100, 0), (1, 4.0, 8.0, 4.0, 67, 23), (2, 4.0, 2.1, 0.0, 100, 0), (3, 4.0, 8.0, 0.0, 1.7, 98.3), (4, 3.9, 0.1, 0.1, 15, 85),
           (5, 0.6, 0.5, 0.1, 3.5, 0)),
part AS (SELECT tag.*, 100.0 * served / nullif(served + reduced, 0) AS by_servers, 100.0 * reduced / nullif(served + reduced, 0) AS by_reduces FROM tag),
cell AS (
    SELECT part.v100 AS ours, paper.v100 AS theirs, 4 AS most FROM part JOIN paper USING (panel) UNION ALL
    SELECT part.gtx, paper.gtx, 8 FROM part JOIN paper USING (panel) UNION ALL
    SELECT part.p100, paper.p100, 4 FROM part JOIN paper USING (panel) UNION ALL
    SELECT coalesce(by_servers, 0), paper.served, 100 FROM part JOIN paper USING (panel) UNION ALL
    SELECT coalesce(by_reduces, 0), paper.reduced, 100 FROM part JOIN paper USING (panel)),
cause (text) AS (VALUES ('by the authors'' own measurements of all-reduces (column measured) servers sum nearly all of InceptionV3''s and ResNet101''s gradients, as in '
    || 'the paper; by a data sheet''s NVLink the V100 machine alone is fastest. With uniform priors, in another order of groups and by Kilter''s search (columns uniform, last and best) it ends elsewhere; many strategies differ by little in time'))
SELECT 'resnet-all', v100 + gtx + p100, printf('%.1f V100, %.1f GTX 1080Ti, %.1f P100', v100, gtx, p100), text FROM tag, cause WHERE panel = 1
UNION ALL
SELECT 'p100', max(p100), group_concat(printf('%s %.1f', title, p100), ', '), text FROM tag, cause WHERE panel IN (0, 2, 3) HAVING count(*) > 0
UNION ALL
SELECT 'bert-large', v100 + gtx + p100, printf('%.1f V100, %.1f GTX 1080Ti, %.1f P100', v100, gtx, p100), text FROM tag, cause WHERE panel = 5
UNION ALL
SELECT 'duplicate', sum(duplicated), group_concat(printf('%s %d', title, duplicated), ', '), text FROM tag, cause HAVING count(*) > 0
UNION ALL
SELECT 'cells', avg(abs(ours - theirs) <= 0.1 * most), printf('%d of %d cells', sum(abs(ours - theirs) <= 0.1 * most), count(*)), text
FROM cell, cause GROUP BY text HAVING count(*) = 30
UNION ALL
SELECT 'mixed', sum(served > 0 AND reduced > 0), group_concat(printf('%s %d by servers, %d by all-reduces', title, served, reduced), ', ') ||
       '; "most models" of Sec. 5.3 are three in the paper''s table, whose own ResNet101 sums to 90 %: 67 and 23', text FROM tag, cause HAVING count(*) > 0;
