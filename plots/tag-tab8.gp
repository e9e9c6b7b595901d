# TAG, Table 8: speed-up over DP-NCCL. The data is tag-tab8.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Speed-up over data parallelism with gradients one by one, simulated" "per cent faster" 5
