# TAG, Table 6: kinds of ops that are duplicated. Columns: kind, how many, in how many models.
page_width = 1000; page_height = 560; page_title = "Ops that sufficient factor broadcasting duplicates, six models, two GTX 1080Ti, batch 4"
call "page.gp" ARG2 ARG3
set tmargin 4
set style fill solid 1.0 border rgb "#222222"
set boxwidth 0.8
set border 3 linecolor rgb "#444444"
set tics nomirror out
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set xtics rotate by 35 right scale 0
set bmargin 8
set ylabel "ops"
set yrange [0:*]
unset key
plot ARG1 using 0:2:xtic(1) with boxes linecolor rgb "#1d6b45", ARG1 using 0:2:2 with labels offset 0, 0.7
load "close.gp"
