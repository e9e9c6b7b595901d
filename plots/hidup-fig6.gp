# HiDup, Fig. 6. The data is hidup-fig6.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on up to 8 machines of 8 V100, simulated" \
    "GPUs (the paper's FastMoE is out of memory on 64)" "iteration time (s)"
