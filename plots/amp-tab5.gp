# AMP, Table 5: best and average strategies by method. The data is amp-tab5.sql's.
call ARG4."/amp-methods.gp" ARG1 ARG2 ARG3 \
    "TransGAN on 16 V100 (even: AMP's degrees, layers cut evenly)"
