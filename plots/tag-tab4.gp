# TAG, Table 4: on how many GPUs of each type an op is. The data is tag-tab4.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "GPUs that an op runs on, the mean over ops" "GPUs" 3
