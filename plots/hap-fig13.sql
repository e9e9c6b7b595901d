-- HAP, Fig. 13: one row a bar, in the columns of hap-bars.gp.
.read shared/hap-bars.sql
