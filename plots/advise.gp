# Choices of machines: iteration against cost, both logarithmic; those on the Pareto front are numbered and listed beside.
# Data: index 0 all choices (cost, seconds, on the front, low and high end of the 90 % interval on a fitted cluster, else NaN), index 1 the
# front from the fastest (cost, seconds, number, with ! where another number is too near to print it, machines, time), index 2 the ranges
# of cost and seconds, and the name of the cost.
set terminal @ARG3 noenhanced size 1200 * px, 640 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
stats ARG1 index 0 using (strcol(4) eq "NaN" ? 0 : 1) nooutput
intervals = STATS_sum > 0
stats ARG1 index 2 using (cost_low = $1, cost_high = $2, low = $3, high = $4, cost = strcol(5), 0) nooutput
stats ARG1 index 1 using 1 nooutput
rows = STATS_records
step = rows > 20 ? 0.66 / rows : 0.033
set multiplot
set lmargin at screen 0.08
set rmargin at screen 0.60
set bmargin at screen 0.12
set tmargin at screen 0.90
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid linetype 1 linecolor rgb "#dddddd" back
set logscale xy
set xrange [cost_low:cost_high]
set yrange [low:high]
set format xy "%.4g"
# Powers of ten alone are too few on a short axis.
parts(ratio) = ratio > 300 ? "1" : ratio > 8 ? "1 2 5" : ratio > 3 ? "1 1.5 2 3 5 7" : "1 1.2 1.4 1.7 2 2.5 3 4 5 6 7 8"
set xtics (cost_low) ; set xtics ()
set ytics (low) ; set ytics ()
do for [e = floor(log10(cost_low)):ceil(log10(cost_high))] { do for [m in parts(cost_high / cost_low)] { set xtics add (10.0 ** e * m) } }
do for [e = floor(log10(low)):ceil(log10(high))] { do for [m in parts(high / low)] { set ytics add (10.0 ** e * m) } }
set xlabel cost
set ylabel "iteration (s)"
set label 1 "Which machines to train on" at screen 0.08, 0.955 left font "DejaVu Sans,16"
set key at screen 0.63, 0.04 left bottom vertical reverse Left samplen 2 font "DejaVu Sans,11"
set label 2 "Nothing is both faster and as ".(cost eq "GPUs" ? "small" : "cheap")." as these" at screen 0.63, 0.90 left font "DejaVu Sans,13"
do for [r = 1:rows] {
    stats ARG1 index 1 every ::(r - 1)::(r - 1) using (text = strcol(4), time = strcol(5), 0) nooutput
    set label 100 + r sprintf("%d  %s", r, text) at screen 0.63, 0.85 - step * (r - 1) left font "DejaVu Sans,10"
    set label 1000 + r time at screen 0.985, 0.85 - step * (r - 1) right font "DejaVu Sans,10"
}
plot for [i = 1:intervals] ARG1 index 0 using 1:2:4:5 with yerrorbars pointtype 0 linewidth 1.5 linecolor rgb "#14375e" title "90 % of measurements", \
     ARG1 index 0 using ($3 == 0 ? $1 : NaN):2 with points pointtype 6 pointsize 1 linewidth 1.5 linecolor rgb "#888888" title "others", \
     ARG1 index 1 using 1:2 with lines linewidth 2 linecolor rgb "#4f86b8" title "the front", \
     ARG1 index 1 using 1:2 with points pointtype 7 pointsize 2.4 linecolor rgb "#14375e" notitle, \
     ARG1 index 1 using 1:2:(strcol(3)[strlen(strcol(3)):*] eq "!" ? "" : strcol(3)) with labels center textcolor rgb "white" font "DejaVu Sans,9" notitle
unset multiplot
set output
