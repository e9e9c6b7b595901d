-- TAG, Fig. 5: one row per bar, in the columns of tag-bars.gp: panel, its title, seat, name, status, ours, the paper's.
WITH
.read shared/tag-panels.sql
.read shared/tag-seats.sql
.read shared/tag-bars.sql
SELECT panel, title, seat, name, status, iteration_time_s, NULL, ordinal AS rows FROM bar ORDER BY panel, seat;
