# TAG, Fig. 7: loss with and without runtime feedback. The data is tag-fig7.sql's.
set xlabel "epochs" offset 0, 0.4
set ylabel "mean cross entropy"
set xrange [0:25]
set yrange [*:*] # not from zero, which would press the curves together
set key below horizontal reverse Left width 4 spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 "TAG's network by epoch: lessons learnt and held out"
