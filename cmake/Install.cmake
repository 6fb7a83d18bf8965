# What `cmake --install` puts where, and the package that find_package(pawl) finds. Included by the
# top CMakeLists.txt.
#
#   bin/pawl                      the stock program
#   include/pawl, lib/libpawl*.a  the library, target pawl::pawl, and pawl::testing
#   lib/cmake/pawl                the package's configuration
#   lib/pawl/deps                 libraries that scripts/setup built because the system has none
#   share/pawl                    scripts (migrate, services), migrations, conf/reference.toml, conf/prometheus, conf/grafana

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pawl_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/pawl")
set(pawl_share_dir "${CMAKE_INSTALL_DATADIR}/pawl")
# A folder of its own: its libraries must not hide the system's from other packages.
set(PAWL_INSTALLED_DEPS_DIR "${CMAKE_INSTALL_LIBDIR}/pawl/deps")

install(TARGETS pawl pawl_testing EXPORT pawlTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/framework/include/pawl"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
if(TARGET pawl-cli)
  install(TARGETS pawl-cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

install(PROGRAMS "${PROJECT_SOURCE_DIR}/scripts/migrate" "${PROJECT_SOURCE_DIR}/scripts/services"
        DESTINATION "${pawl_share_dir}/scripts")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/lib" DESTINATION "${pawl_share_dir}/scripts"
        PATTERN target EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/migrations" DESTINATION "${pawl_share_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/conf/reference.toml" DESTINATION "${pawl_share_dir}/conf")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/conf/prometheus" "${PROJECT_SOURCE_DIR}/conf/grafana"
        DESTINATION "${pawl_share_dir}/conf")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${pawl_share_dir}")

install(EXPORT pawlTargets NAMESPACE pawl:: DESTINATION "${pawl_package_dir}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/pawlConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/pawlConfig.cmake"
  INSTALL_DESTINATION "${pawl_package_dir}" PATH_VARS PAWL_INSTALLED_DEPS_DIR)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/pawlConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/pawlConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/pawlConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Dependencies.cmake"
        DESTINATION "${pawl_package_dir}")

# These travel along when this build links against those that scripts/setup made: whoever uses the
# package has no others. Libraries of the system stay the system's.
foreach(library IN ITEMS libpqxx librdkafka hiredis)
  pawl_newest_dependency(${library} folder)
  set(config_dir "${${library}_DIR}")
  if(library STREQUAL "librdkafka")
    set(config_dir "${RdKafka_DIR}")
  endif()
  cmake_path(IS_PREFIX folder "${config_dir}" NORMALIZE used)
  if(folder AND used)
    install(DIRECTORY "${folder}" DESTINATION "${PAWL_INSTALLED_DEPS_DIR}")
  endif()
endforeach()
