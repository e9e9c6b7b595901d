# Writes the commit of SOURCE to OUTPUT as a C header, if it is another one than the header has; "" outside of a checkout.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define KILTER_REVISION \"@revision@\"\n" @ONLY)
