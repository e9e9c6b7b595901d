# HiDup, Table 5. The data is hidup-tab5.sql's.
axis_low = 0.9
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "What wrong estimates cost HiDup's search" "error of the estimates, per cent" "time over that with right estimates"
