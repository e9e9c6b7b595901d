# Estimated against actual iteration times (HAP, Fig. 18): points on the diagonal are exact predictions; the band is 15 %.
# Data: measured_s, predicted_s; optional: low_s and high_s of the prediction's 90 % interval, 0 where it is not known.
set terminal @ARG3 size 720 * px, 680 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"

least(a, b) = a < b ? a : b
most(a, b) = a > b ? a : b
stats ARG1 using (least(least($1, $2), valid(3) && $3 > 0 ? $3 : $2)) nooutput name "LOW"
stats ARG1 using (most(most($1, $2), valid(4) ? $4 : $2)) nooutput name "HIGH"
bars = 0
stats ARG1 using (bars = bars + (valid(3) && $3 > 0 ? 1 : 0), 1) nooutput
intervals = bars == 0 ? "" : 'ARG1 using ($3 > 0 ? $1 : NaN):2:3:4 with yerrorbars pointtype 0 linewidth 1.5 linecolor rgb "#8fa9bf" title "90 % interval",'
low = LOW_min / 1.3
high = HIGH_max * 1.3

set title "Estimated and actual iteration time" font "DejaVu Sans,16"
set logscale xy
set xrange [low:high]
set yrange [low:high]
set format xy "%.0s %cs"
# Ticks at 1, 2 and 5 of every decade.
do for [axis in "x y"] {
    eval sprintf("set %stics (1e-6)", axis)
    do for [decade=-5:4] {
        do for [step in "1 2 5"] {
            eval sprintf("set %stics add (%se%d)", axis, step, decade)
        }
    }
}
set xlabel "actual time of an iteration"
set ylabel "estimated time of an iteration"
set size square
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid linecolor rgb "#e4e4e4"
set key top left reverse Left
plot [low:high] x * 0.85 with lines linecolor rgb "#999999" dashtype 2 title "15 % off", \
    x * 1.15 with lines linecolor rgb "#999999" dashtype 2 notitle, \
    x with lines linecolor rgb "#444444" linewidth 1 title "equal", \
    @intervals ARG1 using 1:2 with points pointtype 7 pointsize 0.9 linecolor rgb "#14375e" title "a plan"
