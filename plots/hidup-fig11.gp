# HiDup, Fig. 11. The data is hidup-fig11.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Where HiDup places parameters, two machines of 4 V100" "Gb/s between the machines" "parameter tensors"
