# HAP, Fig. 13: per-iteration time on the heterogeneous cluster. The data is hap-fig13.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on HAP's heterogeneous cluster (2 V100 + 6 P100 machines), simulated"
