# HiDup, Table 3. The data is hidup-table3.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Peak memory per GPU, 4 V100" "system" "GB"
