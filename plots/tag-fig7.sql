-- TAG, Fig. 7: one row a point, in the columns of hap-curves.gp: seat and name of the curve, epoch, anything, mean cross entropy.
WITH
.read shared/tag-learning.sql
SELECT seat, name, epoch, 0, loss FROM learning ORDER BY seat, epoch;
