# TAG, Fig. 6: InceptionV3 on two V100. The data is tag-fig6.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Training speed of InceptionV3 on two V100 of one machine, simulated" "speed over DP-NCCL's" 1
