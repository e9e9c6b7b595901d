# HAP, Fig. 15: ablation. The data is hap-fig15.sql's.
page_width = 900; page_height = 600; page_title = "What HAP's decisions add to data parallelism (64 GPUs, simulated)"
call "page.gp" ARG2 ARG3

# OOM: out of memory. The colours of HAP and DP-EV are those of the other figures; all differ in grey too.
colours = "#a6500f #14375e #9cc7e6 #e3e3e3"
names = ""; bars = 0; seats = 0; titles = ""
stats ARG1 using (bars = $1 + 1 > bars ? $1 + 1 : bars, seats = $3 + 1 > seats ? $3 + 1 : seats, 0) nooutput
array name[seats]
array title[bars]
array misfit[bars]
stats ARG1 using (name[$3 + 1] = strcol(4), title[$1 + 1] = strcol(2), \
                  misfit[$1 + 1] = $3 == 0 ? strcol(7) : misfit[$1 + 1], 0) nooutput

set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set style fill solid 1.0 border rgb "#222222"
set boxwidth 0.55
set xrange [-0.6:bars - 0.4]
set yrange [0:1.05]
set xtics 1 scale 0
unset xtics
do for [i = 1:bars] { set xtics add (title[i] i - 1) scale 0 }
set ytics nomirror
set ylabel "throughput relative to the best"
set key outside bottom center horizontal reverse Left samplen 2.5 width 2
set bmargin 5.5
set tmargin 4
do for [i = 1:bars] { if (misfit[i] eq "oom") { set label i "DP-EV OOM" at i - 1, 0.03 center front font "DejaVu Sans,11" textcolor rgb "#ffffff" } }
plot for [k = 1:seats] ARG1 using ($3 == k - 1 ? $1 : NaN):(($5 + $6) / 2):($1 - 0.275):($1 + 0.275):5:6 \
    with boxxyerror linecolor rgb word(colours, k) title name[k]
load "close.gp"
