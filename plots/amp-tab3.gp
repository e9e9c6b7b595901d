# AMP, Table 3: best and average strategies by method. The data is amp-tab3.sql's.
call ARG4."/amp-methods.gp" ARG1 ARG2 ARG3 \
    "GPT-2 on 16 T4: the ten strategies that each method proposes"
