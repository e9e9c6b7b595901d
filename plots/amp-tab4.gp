# AMP, Table 4: best and average strategies by method. The data is amp-tab4.sql's.
call ARG4."/amp-methods.gp" ARG1 ARG2 ARG3 \
    "GPT-2 on 12 V100 and 4 T4: the strategies that each method proposes"
