# HiDup, Table 4. The data is hidup-tab4.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Communication beside computation, BERT-SGMoE, simulated" "cluster" "overlapping ratio"
