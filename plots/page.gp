# The page of a figure: the picture, and below it a strip with the paper's claims. Called with the output and the terminal,
# and with page_width, page_height (of the picture) and page_title set; close.gp draws
# title and strip and ends the page.
# Columns of claims.tsv, whose first row is not a claim: id, the paper's value, tolerance, our value, our distance in tolerances, verdict,
# text, numbers in words. paper("ID") is the paper's value, paper_low and paper_high the ends of its tolerance; NaN if there is none.
set datafile separator tab
set datafile commentschars "#"
claims = -1; claim_values = " "; distances = ""
stats "claims.tsv" using (claims = claims + 1, claim_values = claim_values.sprintf("%s:%.9g ", strcol(1), $2), \
    claim_values = claim_values.sprintf("%s-low:%.9g ", strcol(1), $2 - $3), claim_values = claim_values.sprintf("%s-high:%.9g ", strcol(1), $2 + $3), \
    distances = distances.strcol(5)." ", 0) nooutput
paper_at(key) = strstrt(claim_values, " ".key.":") == 0 ? NaN : \
    0 + word(claim_values[strstrt(claim_values, " ".key.":") + strlen(key) + 2:*], 1)
paper(id) = paper_at(id)
paper_low(id) = paper_at(id."-low")
paper_high(id) = paper_at(id."-high")

claim_height = 34.0
strip_height = claims > 0 && !bare ? 30 + claim_height * claims : 0
whole_height = page_height + strip_height
strip = strip_height / whole_height
# Places and heights of the picture, as parts of the page.
up(y) = strip + (1 - strip) * y
high(h) = (1 - strip) * h
set terminal @ARG2 noenhanced size page_width * px, whole_height * px font "DejaVu Sans,13" background rgb "white"
set output ARG1
set multiplot
set origin 0, up(0)
set size 1, high(1)
