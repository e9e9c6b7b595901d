# HiDup, Fig. 7. The data is hidup-fig7.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on one machine of 8 V100, simulated" "model"
