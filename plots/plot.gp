# A chart of stored results. Data: index 0 place, label, number of x, then a column for each series; index 1 names of the series; index 2 the
# kind, names of x, y and series, least and most of y, the number of results; index 3 place and number of every result.
set terminal @ARG3 noenhanced size 1000 * px, 620 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
stats ARG1 index 2 using (kind = strcol(1), x_name = strcol(2), y_name = strcol(3), by_name = strcol(4), low = $5, high = $6, results = $7, 0) nooutput
stats ARG1 index 1 using 1 nooutput
series = STATS_records
stats ARG1 index 0 using 1 nooutput
places = STATS_records
array name[series]
stats ARG1 index 1 using (name[int($1) + 1] = strcol(2), 0) nooutput
# Names of columns in words: "iteration time (s)", "tokens per s".
plain(s) = (i = strstrt(s, "_")) > 0 ? s[1:i - 1]." ".plain(s[i + 1:]) : s
ends(s, end) = strlen(s) > strlen(end) && s[strlen(s) - strlen(end) + 1:] eq end
title_of(s) = ends(s, "_per_s") ? plain(s) : ends(s, "_s") ? plain(s[1:strlen(s) - 2])." (s)" : ends(s, "_bytes") ? plain(s[1:strlen(s) - 6])." (bytes)" : plain(s)
x_name = title_of(x_name)
y_name = title_of(y_name)
by_name = plain(by_name)
least = kind ne "box" && results > places * series ? "; each the ".(ends(y_name, "per s") || y_name eq "mfu" ? "most" : "least")." of several results" : ""
colours = "#0b5fa5 #c8660a #00957a #a8327d #4a5460 #6b4a00 #518dc8 #b3261e #8c6bb1 #2f9e77 #999999 #14375e"
colour(k) = word(colours, k)
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set lmargin at screen (kind eq "heat" ? 0.24 : 0.11)
set rmargin at screen (kind eq "heat" ? 0.97 : kind eq "box" || series == 1 ? 0.97 : 0.74)
set tmargin at screen 0.90
longest = 0
stats ARG1 index 0 using (longest = strlen(strcol(2)) > longest ? strlen(strcol(2)) : longest, 0) nooutput
turned = kind ne "line" && longest * places > (kind eq "heat" ? 60 : 70)
set bmargin at screen (turned ? 0.36 : 0.14)
# Every so manieth label where there is no place for all.
every = ceil(places / (turned ? 30.0 : 14.0))
set label 1 y_name." by ".(kind eq "box" ? x_name : series > 1 ? x_name." and ".by_name : x_name).least at screen 0.03, 0.955 left font "DejaVu Sans,15"
set xlabel x_name offset 0, (turned ? -7 : 0)
if (kind eq "heat") { unset xlabel }
set key at screen 0.76, 0.90 left top vertical reverse Left samplen 2 spacing 1.1 font "DejaVu Sans,11"
wide = low > 0 && high / low > 30
if (wide && kind ne "heat") { set logscale y }
if (high < 1e4) { set format y "%.4g" } else { set format y "%.1s%c" }
if (kind ne "heat") { set grid ytics linetype 1 linecolor rgb "#dddddd" back; set ylabel y_name offset 0.5, 0 }
if (turned) { set xtics rotate by 90 right font "DejaVu Sans,10" }
label(n, s) = int(n) % every == 0 ? s : ""
set style fill solid 1.0 noborder
if (kind eq "line") {
    stats ARG1 index 0 using 3 nooutput
    if (STATS_min > 0 && STATS_max / STATS_min > 10) { set logscale x; set xrange [STATS_min / 1.1:STATS_max * 1.1] }
    set format x "%.4g"
    if (!wide) { set yrange [0:*] }
    if (series == 1) { unset key }
    plot for [k = 1:series] ARG1 index 0 using 3:(column(3 + k)) with linespoints linewidth 2 pointtype (k < 7 ? 3 + k * 2 : k) pointsize 1.2 \
             linecolor rgb colour(k) title name[k]
} else { if (kind eq "bar") {
    set xrange [-0.6:places - 0.4]
    set yrange [(wide ? low / 1.5 : 0):*]
    if (series == 1) { unset key }
    plot for [k = 1:series] ARG1 index 0 using ($1 + (k - 0.5 - series / 2.0) * 0.84 / series):(column(3 + k)):(0.78 / series) \
             with boxes linecolor rgb colour(k) title name[k], \
         ARG1 index 0 using 1:(NaN):xtic(label($1, strcol(2))) with points notitle
} else { if (kind eq "box") {
    unset key
    set xrange [-0.6:places - 0.4]
    set style boxplot nooutliers
    if (!wide) { set yrange [0:*] }
    filled = ""
    stats ARG1 index 3 using (filled = strstrt(filled, sprintf(" %d ", $1)) ? filled : filled.sprintf(" %d ", $1), 0) nooutput
    plot for [p in filled] ARG1 index 3 using (p + 0):($1 == p + 0 ? $2 : NaN):(0.5) with boxplot linecolor rgb colour(1) fillstyle solid 0.2 notitle, \
         ARG1 index 0 using 1:(NaN):xtic(label($1, strcol(2))) with points notitle
} else {
    unset key
    unset border
    set tics scale 0
    set xrange [-0.5:places - 0.5]
    set yrange [series - 0.5:-0.5]
    set ytics ()
    do for [k = 1:series] { set ytics add (name[k] k - 1) }
    unset colorbox
    set cbrange [0:1]
    set palette defined (0 "#eaf2fa", 1 "#bcd7ef", 2 "#8bb8e0", 3 "#2f6fae", 4 "#0b3f73")
    shade(v) = low < high ? log(v / low) / log(high / low) : 0
    small = places > 12
    plot for [k = 1:series] ARG1 index 0 using 1:(k - 1):($1 - 0.48):($1 + 0.48):(k - 1.48):(k - 0.52):(column(3 + k) > 0 ? shade(column(3 + k)) : NaN):xtic(label($1, strcol(2))) \
             with boxxyerror fillcolor palette notitle, \
         for [k = 1:series] ARG1 index 0 using 1:(k - 1):(small || !(column(3 + k) > 0) ? "" : sprintf(column(3 + k) < 1e3 || column(3 + k) >= 1e6 ? "%.3g" : "%.0f", column(3 + k))):(shade(column(3 + k)) > 0.6 ? 0xffffff : 0x16191d) \
             with labels font "DejaVu Sans,10" textcolor rgb variable notitle
} } }
set output
