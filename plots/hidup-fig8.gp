# HiDup, Fig. 8. The data is hidup-fig8.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on two machines of 4 V100, simulated" "Gb/s between the machines"
