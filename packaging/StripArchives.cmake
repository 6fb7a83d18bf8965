# Run by CPack over what is to be packed: debug information in archives is ten times their code, and
# the packages' own debug symbols do not have it.
file(GLOB_RECURSE archives "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.a")
foreach(archive IN LISTS archives)
  execute_process(COMMAND strip --strip-debug --enable-deterministic-archives "${archive}"
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
