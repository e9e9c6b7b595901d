# HiDup, Fig. 14b: work of the search by number of GPUs. The data is hidup-fig14b.sql's.
set logscale x 2
set xlabel "GPUs"
set ylabel "partial programs"
set yrange [0:*]
set key right bottom reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "Strategy search for BERT-SGMoE with 6 layers"
