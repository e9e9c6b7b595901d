# HAP, Fig. 14: per-iteration time on the homogeneous cluster. The data is hap-fig14.sql's.
note = "ViT and BERT-Base: by the search's bound hardly any program is faster than data parallelism"
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Time of a training iteration on HAP's homogeneous cluster (4 P100 machines), simulated"
