# HiDup, Table 4. The data is hidup-tab4.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of an iteration and what it consists of, BERT-SGMoE, simulated" "cluster" ""
