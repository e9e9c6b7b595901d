# AMP, Fig. 3: speed-up of the layer assignment by heterogeneity. The data is amp-fig3.sql's.
set logscale x 2
set xtics ("1/64" 1.0 / 64, "1/32" 1.0 / 32, "1/16" 1.0 / 16, "1/8" 0.125, "1/4" 0.25, "1/2" 0.5, "1" 1, "2" 2, "4" 4)
set xlabel "heterogeneity: FLOPs of a narrow layer over those of a wide one"
set ylabel "speed-up of AMP's layer assignment"
set yrange [0.8:*]
set key top left reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "TransGAN in 4 stages, 4 replicas (16 V100, simulated)"
