# HAP, Table 1. The data is hap-tab1.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Parameters of HAP's benchmark models" "model" "2^20 parameters"
