# Finds every library that pawl uses. Included by CMakeLists.txt, and by the installed package's
# configuration, so that both see the same libraries.
#
# Targets that are there afterwards:
#   Threads::Threads  CURL::libcurl  OpenSSL::SSL  OpenSSL::Crypto  PostgreSQL::PostgreSQL (libpq)  libpqxx::pqxx
#   RdKafka::rdkafka (the C library)  fmt::fmt  spdlog::spdlog  simdjson::simdjson
#   tomlplusplus::tomlplusplus  CLI11::CLI11  nlohmann_json::nlohmann_json
#   PkgConfig::prometheus-cpp-core  httplib::httplib
#   hiredis::hiredis  hiredis::hiredis_ssl (only with PAWL_REDIS)
#   Catch2::Catch2  Catch2::Catch2WithMain (only with PAWL_BUILD_TESTS)
# All are imported targets, whose include folders the compiler treats as SYSTEM.
#
# scripts/setup builds some of them into .deps/NAME-VERSION-COMPILER/. Libraries installed elsewhere
# serve as well: point CMAKE_PREFIX_PATH to them, it is searched first. Who includes this file from
# elsewhere sets PAWL_DEPS_DIR to that .deps folder before.

set(PAWL_DEPS_DIR "${CMAKE_CURRENT_LIST_DIR}/../.deps"
    CACHE PATH "Folder of the libraries that scripts/setup built")

# The newest complete build of a library for the compiler in use; empty if there is none.
function(pawl_newest_dependency name result)
  string(TOLOWER "${CMAKE_CXX_COMPILER_ID}" compiler)
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
  file(GLOB stamps "${PAWL_DEPS_DIR}/${name}-*-${compiler}-${major}/.complete")
  list(SORT stamps COMPARE NATURAL ORDER DESCENDING)
  set(folder "")
  if(stamps)
    list(GET stamps 0 newest)
    get_filename_component(folder "${newest}" DIRECTORY)
    get_filename_component(folder "${folder}" ABSOLUTE)
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

set(pawl_missing "")

# find_package that collects what is missing, so that one message names everything at once.
macro(pawl_find_package package)
  find_package(${package} ${ARGN} QUIET)
  if(${package}_FOUND)
    set(pawl_version "${${package}_VERSION}")
    message(STATUS "pawl: ${package} ${pawl_version}")
  else()
    list(APPEND pawl_missing "${package}")
  endif()
endmacro()

# The same by pkg-config, as PkgConfig::MODULE. Where that knows no such module (vcpkg's ports have none)
# the CMake configuration of PACKAGE stands behind the name.
macro(pawl_find_module module version package target)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module}>=${version})
  set(pawl_version "${${module}_VERSION}")
  set(pawl_found "${${module}_FOUND}")
  if(NOT pawl_found)
    pkg_check_modules(${module}_any QUIET ${module})
    if(NOT ${module}_any_FOUND)
      find_package(${package} CONFIG QUIET)
      set(pawl_version "${${package}_VERSION}")
      if(TARGET ${target} AND (pawl_version STREQUAL "" OR pawl_version VERSION_GREATER_EQUAL ${version}))
        set(pawl_found TRUE)
        if(NOT TARGET PkgConfig::${module})
          add_library(PkgConfig::${module} INTERFACE IMPORTED GLOBAL)
          target_link_libraries(PkgConfig::${module} INTERFACE ${target})
        endif()
      endif()
    endif()
  endif()
  if(pawl_found)
    message(STATUS "pawl: ${module} ${pawl_version}")
  else()
    list(APPEND pawl_missing "${module}")
  endif()
endmacro()

foreach(pawl_library IN ITEMS libpqxx librdkafka hiredis cpp-httplib catch2)
  pawl_newest_dependency(${pawl_library} pawl_folder)
  if(pawl_folder)
    list(APPEND CMAKE_PREFIX_PATH "${pawl_folder}")
    if(pawl_library STREQUAL "librdkafka")
      # Its configuration looks for LZ4 with a module that is installed beside it.
      list(APPEND CMAKE_MODULE_PATH "${pawl_folder}/lib/cmake/RdKafka")
    endif()
  endif()
endforeach()

set(THREADS_PREFER_PTHREAD_FLAG ON)
pawl_find_package(Threads)
pawl_find_package(OpenSSL)
# A CMake configuration of 8 says that it is not compatible with 7, and vcpkg asks nothing else.
find_package(CURL 7.85 QUIET)
if(NOT CURL_FOUND)
  pawl_find_package(CURL 8.0)
else()
  message(STATUS "pawl: CURL ${CURL_VERSION}")
endif()
pawl_find_package(PostgreSQL)
pawl_find_package(libpqxx 7.10)
pawl_find_package(RdKafka 2.12)
pawl_find_package(fmt)
pawl_find_package(spdlog)
pawl_find_package(simdjson)
pawl_find_package(tomlplusplus)
pawl_find_package(CLI11)
pawl_find_package(nlohmann_json)
# cpp-httplib's CMake configuration says of each minor version that it is not compatible with others.
find_package(httplib CONFIG QUIET)
if(httplib_FOUND AND httplib_VERSION VERSION_GREATER_EQUAL 0.41)
  message(STATUS "pawl: httplib ${httplib_VERSION}")
else()
  list(APPEND pawl_missing "httplib")
endif()
# prometheus-cpp's has no version and wants more than its core.
pawl_find_package(PkgConfig)
if(PkgConfig_FOUND)
  pawl_find_module(prometheus-cpp-core 1.0 prometheus-cpp prometheus-cpp::core)
endif()
if(PAWL_REDIS)
  pawl_find_package(hiredis 1.2)
  # Has no version of its own, and comes with that one.
  pawl_find_package(hiredis_ssl)
endif()
if(PAWL_BUILD_TESTS)
  pawl_find_package(Catch2 3.7)
endif()

if(pawl_missing)
  list(JOIN pawl_missing ", " pawl_missing)
  string(CONCAT pawl_missing
    "pawl: not found, or too old: ${pawl_missing}.\n"
    "On Debian 12 and later run scripts/setup (for another compiler: CXX=... scripts/setup). "
    "Elsewhere install them and point CMAKE_PREFIX_PATH to them.")
  if(CMAKE_FIND_PACKAGE_NAME)
    # Inside find_package(pawl) it is for the caller to decide whether that is an error.
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "${pawl_missing}")
  else()
    message(FATAL_ERROR "${pawl_missing}")
  endif()
endif()
