-- TAG, our side of the claims in data/paper/tag.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/tag-panels.sql
.read shared/tag-tab3.sql
SELECT claim, n AS ours, printf('%.1f MiB without what the host has', n) AS note, 'the model is another one' AS reason FROM cell;
