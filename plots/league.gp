# Planners by how much slower they are than the fastest plan of each meeting: mean, and a line to the worst; the gap to the bound as a
# circle. Data: place, planner, mean regret, worst regret, mean gap, in percent.
set terminal @ARG3 size 1000,640 font "DejaVu Sans,13" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
stats ARG1 using 1 nooutput
rows = STATS_max + 1
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set lmargin at screen 0.22
set rmargin at screen 0.96
set yrange [rows - 0.4:-0.6]
set xrange [0:*]
unset ytics
set grid xtics linetype 1 linecolor rgb "#dddddd" back
set xlabel "slower than the fastest plan (%)"
set title "Planners by regret" left font "DejaVu Sans,16"
set key top right reverse Left
set style fill solid 1.0 noborder
plot ARG1 using ($3 / 2):1:($3 / 2):(0.3) with boxxyerror linecolor rgb "#4f86b8" title "mean", \
     ARG1 using 3:1:($4 - $3):(0) with vectors nohead linewidth 2 linecolor rgb "#14375e" title "to the worst", \
     ARG1 using 5:1 with points pointtype 6 pointsize 1.4 linewidth 2 linecolor rgb "#e08a2a" title "mean over the bound", \
     ARG1 using (0):1:2 with labels right offset -1, 0 notitle
set output
