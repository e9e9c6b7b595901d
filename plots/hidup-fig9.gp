# HiDup, Fig. 9a. The data is hidup-fig9.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on two machines of 4 V100, 100 Gb/s, simulated" "batch size of a GPU"
