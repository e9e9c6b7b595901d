# TAG, Table 3. The data is tag-tab3.sql's.
call ARG4."/hap-bars.gp" ARG1 ARG2 ARG3 \
    "Parameters of TAG's benchmark models" "model" "MiB"
