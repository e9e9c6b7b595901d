# HAP, Fig. 19: synthesis time by number of layers. The data is hap-fig19.sql's.
set logscale y 10
set format y "%g"
set xlabel "layers"
set ylabel "time to find the program (s, wall clock)"
set xtics 4
set xrange [3:25]
set yrange [0.001:200]
set key top left reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "Program synthesis for ViT on HAP's cluster of 8 GPUs"
