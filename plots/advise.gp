# Choices of machines: iteration against cost, the Pareto front in colour.
# Data: index 0 all choices (cost, seconds, on the front, machines, low and high end of the 90 % interval on a fitted cluster, else NaN), index 1 the front in the order of cost, index 2 the name of the cost.
set terminal @ARG3 size 1100,700 font "DejaVu Sans,13" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
cost = system(sprintf("tail -n 1 '%s'", ARG1))
stats ARG1 index 0 using (strcol(5) eq "NaN" ? 0 : 1) nooutput
intervals = STATS_sum > 0
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid linetype 1 linecolor rgb "#dddddd" back
set xrange [0:*]
set yrange [0:*]
set offsets graph 0, graph 0.25, graph 0.08, 0
set xlabel cost
set ylabel "iteration (s)"
set title "Which machines to train on" left font "DejaVu Sans,16"
set key bottom right reverse Left
plot ARG1 index 1 using 1:2 with lines linewidth 2 linecolor rgb "#4f86b8" title "no other choice is faster and cheaper", \
     for [i=1:intervals] ARG1 index 0 using 1:2:5:6 with yerrorbars pointtype 0 linewidth 1.5 linecolor rgb "#14375e" title "90 % of measurements", \
     ARG1 index 0 using ($3 == 1 ? $1 : NaN):2 with points pointtype 7 pointsize 1.6 linecolor rgb "#14375e" notitle, \
     ARG1 index 0 using ($3 == 0 ? $1 : NaN):2 with points pointtype 6 pointsize 1.4 linewidth 2 linecolor rgb "#888888" title "others", \
     ARG1 index 0 using 1:2:4 with labels left offset 1, 0.4 font "DejaVu Sans,10" notitle
set output
