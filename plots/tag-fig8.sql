-- TAG, Fig. 8: one row per bar, in the columns of tag-bars.gp: seconds of search.
WITH
.read shared/tag-panels.sql
.read shared/tag-priors.sql
SELECT panel, title, seat, name, 'ok', search_time_s, NULL FROM run WHERE experiment = 'tag-fig8' ORDER BY panel, seat;
