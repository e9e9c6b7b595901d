# HAP, Fig. 16: one model on all machines compared with two at once. The data is hap-fig16.sql's.
page_width = 900; page_height = 600; page_title = "Two models on the V100 and the P100 machines, or one on all (simulated)"
call "page.gp" ARG2 ARG3

colours = "#f0a63c #a6500f #14375e"
places = 0; seats = 0
stats ARG1 using (places = $1 + 1 > places ? $1 + 1 : places, seats = $3 + 1 > seats ? $3 + 1 : seats, 0) nooutput
array name[seats]
array title[places]
stats ARG1 using (name[$3 + 1] = strcol(4), title[$1 + 1] = strcol(2), 0) nooutput

set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set style fill solid 1.0 border rgb "#222222"
set xrange [-0.6:places - 0.4]
set yrange [0:1.15]
set xtics () scale 0
do for [i = 1:places] { set xtics add (title[i] i - 1) }
set ytics nomirror
set ylabel "throughput relative to concurrent"
set key outside bottom center horizontal reverse Left samplen 2.5 width 2
set tmargin 4
set object 1 rectangle from graph 0, first paper_low("lowest") to graph 1, first paper_high("lowest") fillcolor rgb "#ffd24d" fillstyle solid 0.25 noborder behind
set object 2 rectangle from graph 0, first paper_low("highest") to graph 1, first paper_high("highest") fillcolor rgb "#ffd24d" fillstyle solid 0.25 noborder behind
set label 9 "BERT-MoE has 128 experts on all machines, 32 and 96 on the parts, as in the paper" at screen 0.5, up(0.905) center \
    font "DejaVu Sans,11" textcolor rgb "#444444"
left(place, seat) = place + (seat == 2 ? 0.02 : -0.36)
plot for [k = 1:seats] ARG1 using ($3 == k - 1 ? left($1, $3) + 0.17 : NaN):(($5 + $6) / 2):(left($1, $3)):(left($1, $3) + 0.34):5:6 \
         with boxxyerror linecolor rgb word(colours, k) title name[k], \
     ARG1 using ($3 == 2 ? left($1, $3) + 0.17 : NaN):6:(sprintf("%.0f %%", 100 * $6)) with labels offset 0, 0.7 \
         textcolor rgb "#222222" notitle, \
     paper("lowest") with lines linewidth 2 dashtype 2 linecolor rgb "#000000" title "paper: lowest, highest", \
     paper("highest") with lines linewidth 2 dashtype 2 linecolor rgb "#000000" notitle
load "close.gp"
