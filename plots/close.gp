# The title and the strip of claims below the picture that page.gp began, and the end of the page.
reset
set datafile separator tab
set datafile commentschars "#"
set lmargin 0; set rmargin 0; set tmargin 0; set bmargin 0
unset border; unset tics; unset key
set label 3 page_title at screen 0.5, screen 1 - 24.0 / whole_height center font "DejaVu Sans,16"
set origin 0, 0
set size 1, (claims > 0 && !bare ? strip : 0.1)
if (claims == 0 || bare) { plot [0:1] [0:1] NaN }
if (claims > 0 && !bare) {
    set xrange [0:page_width]
    set yrange [strip_height:0]
    # The band is the paper's value and its tolerance; a mark beyond three tolerances is drawn at the edge.
    band = page_width - 120; tolerance_width = 26.0
    held(verdict) = verdict eq "holds"
    clip(d) = d > 3 ? 3 : (d < -3 ? -3 : d)
    row(i) = 24 + claim_height * (i - 1)
    # A claim of the kind yes or no has neither a distance nor a band.
    # gnuplot 5.4 crashes where no label of a plot has a place, so that all have one, and some no text.
    number(t) = t eq "NaN" ? 0 : 0 + t
    beyond(d) = d > 3 ? "▶" : (d < -3 ? "◀" : "")
    mark(d) = band + tolerance_width * clip(d)
    set object 1 rectangle from 0, 0 to page_width, strip_height fillcolor rgb "#f6f6f4" fillstyle solid 1 noborder behind
    set label 1 "The paper's claims" at 16, 12 font "DejaVu Sans,11" textcolor rgb "#444444"
    set label 2 "band: paper and tolerance, mark: here" at page_width - 16, 12 right font "DejaVu Sans,10" textcolor rgb "#444444"
    do for [i = 1:claims] {
        if (word(distances, i + 1) eq "NaN") { continue }
        set object 10 + i rectangle from band - tolerance_width, row(i) + 18 to band + tolerance_width, row(i) + 26 fillcolor rgb "#bcd9b4" fillstyle solid 1 noborder behind
        set arrow 10 + i from band - 3 * tolerance_width, row(i) + 22 to band + 3 * tolerance_width, row(i) + 22 nohead linecolor rgb "#bbbbbb" back
    }
    plot "claims.tsv" every ::1 using (16):(row($0 + 1) + 8):7 with labels left font "DejaVu Sans,11" textcolor rgb "#222222", \
         "claims.tsv" every ::1 using (16):(row($0 + 1) + 23):8 with labels left font "DejaVu Sans,10" textcolor rgb "#555555", \
         "claims.tsv" every ::1 using (page_width - 16):(row($0 + 1) + 7):(held(strcol(6)) ? strcol(6) : "") with labels right font "DejaVu Sans,10" textcolor rgb "#1f6b2d", \
         "claims.tsv" every ::1 using (page_width - 16):(row($0 + 1) + 7):(held(strcol(6)) ? "" : strcol(6)) with labels right font "DejaVu Sans,10" textcolor rgb "#a02c10", \
         "claims.tsv" every ::1 using (held(strcol(6)) ? mark($5) : NaN):(row($0 + 1) + 22) with points pointtype 7 pointsize 1 linecolor rgb "#1f6b2d", \
         "claims.tsv" every ::1 using (held(strcol(6)) || abs($5) > 3 ? NaN : mark($5)):(row($0 + 1) + 22) with points pointtype 5 pointsize 1 linecolor rgb "#a02c10", \
         "claims.tsv" every ::1 using (mark(number(strcol(5)))):(row($0 + 1) + 22):(beyond(number(strcol(5)))) with labels font "DejaVu Sans,13" textcolor rgb "#a02c10"
}
unset multiplot
set output
