# Best and average strategies of several methods, relative to AMP's best. Called by a table's own script with the arguments data,
# output, terminal, title. Columns of the data: seat, name, best, mean, the paper's best, the paper's mean, strategies, deviation, the
# paper's deviation, best and mean as text.
page_width = 900; page_height = 600; page_title = ARG4
call "page.gp" ARG2 ARG3

methods = 0; top = 1
names = ""
stats ARG1 using (methods = $1 + 1 > methods ? $1 + 1 : methods, top = $3 > top ? $3 : top, top = $4 + $8 > top ? $4 + $8 : top, \
                  top = $6 + $9 > top ? $6 + $9 : top, 0) nooutput
array name[methods]
stats ARG1 using (name[$1 + 1] = strcol(2), 0) nooutput

set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set style fill solid 1.0 border rgb "#222222"
set boxwidth 0.3
set xrange [-0.6:methods - 0.4]
set xtics 1
unset xtics
do for [i = 1:methods] { set xtics add (name[i] i - 1) scale 0 }
if (top > 8) { set logscale y 2; set yrange [0.5:2 * top] } else { set yrange [0:1.15 * top] }
set ylabel "iteration time over that of AMP's best"
set key outside bottom center horizontal reverse Left samplen 2 width 2 font "DejaVu Sans,12"
set tmargin 4
# Seconds stand at the foot of the bars, which have room there.
set pointintervalbox 0
foot = top > 8 ? 0.55 : 0.04 * top
plot ARG1 using ($1 - 0.17):3 with boxes linecolor rgb "#14375e" title "best, simulated", \
     ARG1 using ($1 + 0.17):4 with boxes linecolor rgb "#9cc7e6" title "average and deviation, simulated", \
     ARG1 using ($1 - 0.17):5 with points pointtype 7 pointsize 1.6 linecolor rgb "#f0a63c" title "best, measured in the paper", \
     ARG1 using ($1 + 0.22):6:9 with yerrorbars pointtype 9 pointsize 1.8 linewidth 2 linecolor rgb "#a6500f" title "average and deviation, measured", \
     ARG1 using ($1 + 0.12):4:8 with yerrorbars pointtype 0 linewidth 1.5 linecolor rgb "#333333" notitle, \
     ARG1 using ($1 - 0.17):(foot):10 with labels font "DejaVu Sans,11" textcolor rgb "#ffffff" notitle, \
     ARG1 using ($1 + 0.17):(foot):11 with labels font "DejaVu Sans,11" textcolor rgb "#222222" notitle
load "close.gp"
