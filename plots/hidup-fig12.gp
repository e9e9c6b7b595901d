# HiDup, Fig. 12. The data is hidup-fig12.sql's.
whole_ticks = 1
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "How HiDup gates tokens, two machines of 4 V100" "Gb/s between the machines" "MoE layers"
