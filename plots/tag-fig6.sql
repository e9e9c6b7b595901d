-- TAG, Fig. 6: one row per bar, in the columns of tag-bars.gp: speed over that of data parallelism with gradients one by one.
WITH
.read shared/tag-fig6.sql
dp AS (SELECT iteration_time_s AS dp_s FROM bar WHERE planner = 'dp-nccl')
SELECT 0, 'InceptionV3', seat, name, status, dp_s / iteration_time_s, NULL, ordinal AS rows FROM bar, dp ORDER BY iteration_time_s DESC;
