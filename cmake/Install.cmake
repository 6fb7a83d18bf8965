# What `cmake --install` puts where, and the package that find_package(pawl) finds. Included by the
# top CMakeLists.txt. Two components, which are two packages as well (Package.cmake):
#
# runtime
#   bin/pawl, bin/pawl-migrate    the stock program, and the script behind `pawl migrate`
#   share/pawl                    that script, migrations, conf/reference.toml, prometheus, grafana
#   share/man, share/bash-completion, share/zsh, share/doc/pawl
#   lib/systemd/system            the unit pawl@.service, where the prefix is /usr
# dev
#   include/pawl, lib/libpawl*.a  the library, target pawl::pawl, and pawl::testing
#   lib/libpawl.so                the shared one, with PAWL_BUILD_SHARED
#   lib/cmake/pawl, lib/pkgconfig the packages' configurations
#   lib/pawl/deps                 libraries that scripts/setup built because the system has none
#   share/pawl/scripts            services, for pawl::testing

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pawl_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/pawl")
set(pawl_share_dir "${CMAKE_INSTALL_DATADIR}/pawl")
# A folder of its own: its libraries must not hide the system's from other packages.
set(PAWL_INSTALLED_DEPS_DIR "${CMAKE_INSTALL_LIBDIR}/pawl/deps")

# ---- runtime -------------------------------------------------------------------------------------

if(TARGET pawl-cli)
  install(TARGETS pawl-cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)

  # What is made of the program's own command line.
  set(texts "${CMAKE_CURRENT_BINARY_DIR}/texts")
  file(MAKE_DIRECTORY "${texts}")
  add_custom_command(
    OUTPUT "${texts}/pawl.1" "${texts}/pawl.bash" "${texts}/_pawl" "${texts}/pawl-migrate.1"
    COMMAND pawl-cli manual > "${texts}/pawl.1"
    COMMAND pawl-cli completion bash > "${texts}/pawl.bash"
    COMMAND pawl-cli completion zsh > "${texts}/_pawl"
    COMMAND "${PROJECT_SOURCE_DIR}/packaging/migrate-page" > "${texts}/pawl-migrate.1"
    DEPENDS pawl-cli "${PROJECT_SOURCE_DIR}/scripts/migrate"
    VERBATIM)
  add_custom_target(pawl-texts ALL DEPENDS "${texts}/pawl.1" "${texts}/pawl.bash" "${texts}/_pawl")
  install(FILES "${texts}/pawl.1" "${texts}/pawl-migrate.1"
          DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT runtime)
  install(FILES "${texts}/pawl.bash" RENAME pawl
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT runtime)
  install(FILES "${texts}/_pawl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions"
          COMPONENT runtime)
endif()

install(PROGRAMS "${PROJECT_SOURCE_DIR}/scripts/migrate" DESTINATION "${pawl_share_dir}/scripts"
        COMPONENT runtime)
file(CREATE_LINK "../share/pawl/scripts/migrate" "${CMAKE_CURRENT_BINARY_DIR}/pawl-migrate" SYMBOLIC)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/pawl-migrate" DESTINATION "${CMAKE_INSTALL_BINDIR}"
        COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/migrations" DESTINATION "${pawl_share_dir}"
        COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/conf/reference.toml" DESTINATION "${pawl_share_dir}/conf"
        COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/conf/prometheus" "${PROJECT_SOURCE_DIR}/conf/grafana"
        DESTINATION "${pawl_share_dir}/conf" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/conf/payments.toml"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/pawl/examples" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/pawl" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/pawl" COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/pawl"
        COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/packaging/systemd/pawl@.service"
        DESTINATION "lib/systemd/system" COMPONENT runtime)

# ---- dev -----------------------------------------------------------------------------------------

install(TARGETS pawl pawl_testing EXPORT pawlTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
if(TARGET pawl_shared)
  install(TARGETS pawl_shared EXPORT pawlTargets
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/framework/include/pawl"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev)
install(PROGRAMS "${PROJECT_SOURCE_DIR}/scripts/services" DESTINATION "${pawl_share_dir}/scripts"
        COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/lib" DESTINATION "${pawl_share_dir}/scripts"
        COMPONENT dev PATTERN target EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libpawl-dev" COMPONENT dev)

install(EXPORT pawlTargets NAMESPACE pawl:: DESTINATION "${pawl_package_dir}" COMPONENT dev)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/pawlConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/pawlConfig.cmake"
  INSTALL_DESTINATION "${pawl_package_dir}" PATH_VARS PAWL_INSTALLED_DEPS_DIR)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/pawlConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/pawlConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/pawlConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Dependencies.cmake"
        DESTINATION "${pawl_package_dir}" COMPONENT dev)

# These travel along when this build links against those that scripts/setup made: whoever uses the
# package has no others. Libraries of the system stay the system's.
set(pawl_pc_pqxx "")
foreach(library IN ITEMS libpqxx librdkafka hiredis cpp-httplib)
  pawl_newest_dependency(${library} folder)
  set(config_dir "${${library}_DIR}")
  if(library STREQUAL "librdkafka")
    set(config_dir "${RdKafka_DIR}")
  elseif(library STREQUAL "cpp-httplib")
    set(config_dir "${httplib_DIR}")
  endif()
  cmake_path(IS_PREFIX folder "${config_dir}" NORMALIZE used)
  if(folder AND used)
    install(DIRECTORY "${folder}" DESTINATION "${PAWL_INSTALLED_DEPS_DIR}" COMPONENT dev)
    if(library STREQUAL "libpqxx")
      cmake_path(GET folder FILENAME name)
      set(pawl_pc_pqxx "-isystem \${prefix}/${PAWL_INSTALLED_DEPS_DIR}/${name}/include")
    endif()
  endif()
endforeach()

if(TARGET pawl_shared)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/pawl.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/pawl.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/pawl.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
          COMPONENT dev)
endif()
