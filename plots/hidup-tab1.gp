# HiDup, Table 1. The data is hidup-tab1.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Parameters of HiDup's benchmark models" "model" "million parameters"
