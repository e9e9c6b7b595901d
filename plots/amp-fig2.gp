# AMP, Fig. 2: simulated time of the candidates in the order of their predicted time. The data is amp-fig2.sql's: setting, title,
# rank by prediction, seconds, rank by simulation, Spearman's correlation, rank of the best by prediction in the paper (Sec. 4.5).
page_width = 1200; page_height = 480; page_title = "AMP's candidates: predicted order against simulated time"
call "page.gp" ARG2 ARG3
panels = 0
stats ARG1 using (panels = $1 + 1 > panels ? $1 + 1 : panels, 0) nooutput
array title[panels]
array rho[panels]
array top[panels]
array ranked[panels]
do for [i = 1:panels] { top[i] = 0 }
stats ARG1 using (title[$1 + 1] = strcol(2), rho[$1 + 1] = $6, ranked[$1 + 1] = $7, top[$1 + 1] = $4 > top[$1 + 1] ? $4 : top[$1 + 1], 0) nooutput

set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
unset key
set xlabel "rank by predicted time" offset 0, 0.4
set lmargin 9; set rmargin 2; set tmargin 3; set bmargin 3.5
set label 9 "triangle: fastest here; dashed line: the paper's fastest" at screen 0.5, up(0.905) center font "DejaVu Sans,11" textcolor rgb "#444444"
do for [panel = 0:panels - 1] {
    set size 1.0 / panels, high(0.88)
    set origin panel / real(panels), up(0)
    set yrange [0:1.15 * top[panel + 1]]
    set ylabel panel == 0 ? "simulated iteration time (s)" : ""
    set title sprintf("%s\nSpearman %.2f; paper's best: %d", title[panel + 1], rho[panel + 1], ranked[panel + 1]) font "DejaVu Sans,12" offset 0, -0.4
    set arrow 1 from ranked[panel + 1], graph 0 to ranked[panel + 1], graph 1 nohead dashtype 2 linecolor rgb "#d8a200" linewidth 2 back
    plot ARG1 using ($1 == panel && $5 > 1 ? $3 : NaN):4 with points pointtype 7 pointsize 1.2 linecolor rgb "#14375e", \
         ARG1 using ($1 == panel && $5 == 1 ? $3 : NaN):4 with points pointtype 9 pointsize 2 linecolor rgb "#a6500f"
}
load "close.gp"
