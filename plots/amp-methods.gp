# Best and average strategies of several methods, relative to AMP's best. Called by a table's own script with the arguments data,
# output, terminal, title. Columns of the data: seat, name, best, mean, the paper's best, the paper's mean, strategies.
page_width = 900; page_height = 600; page_title = ARG4
call "page.gp" ARG2 ARG3

methods = 0; top = 1
names = ""
stats ARG1 using (methods = $1 + 1 > methods ? $1 + 1 : methods, top = $3 > top ? $3 : top, top = $4 > top ? $4 : top, \
                  top = $6 > top ? $6 : top, 0) nooutput
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
set key outside bottom center horizontal reverse Left samplen 2 width 2
set tmargin 4
plot ARG1 using ($1 - 0.17):3 with boxes linecolor rgb "#14375e" title "best, simulated", \
     ARG1 using ($1 + 0.17):4 with boxes linecolor rgb "#9cc7e6" title "average, simulated", \
     ARG1 using ($1 - 0.17):5 with points pointtype 7 pointsize 1.6 linecolor rgb "#f0a63c" title "best, measured in the paper", \
     ARG1 using ($1 + 0.17):6 with points pointtype 9 pointsize 1.8 linecolor rgb "#a6500f" title "average, measured"
load "close.gp"
