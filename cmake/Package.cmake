# Debian packages, by CPack: scripts/package makes them.
#
#   pawl                the program, its migrations, manual pages, completion, unit
#   libpawl-dev         headers, the library static and shared, CMake and pkg-config
#   pawl-dbgsym, libpawl-dev-dbgsym
#
# What a package needs of the distribution is found by dpkg-shlibdeps. Libraries that the
# distribution has only older are linked statically (scripts/setup); nothing else is bundled.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pawl)
set(CPACK_PACKAGE_VENDOR "pawl")
set(CPACK_PACKAGE_CONTACT "pawl maintainers <maintainers@pawl.invalid>")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
# Programs and the shared library are stripped as their symbols are put apart; archives by this.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/StripArchives.cmake")
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Packages of one distribution are not those of another: ~deb12, ~deb13.
set(CPACK_DEBIAN_PACKAGE_RELEASE "1${PAWL_PACKAGE_SUFFIX}")
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME pawl)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "Takes messages from Kafka and applies each of them to PostgreSQL in one
 transaction with its idempotency key and the processed offset. A program that
 needs a configuration and no code.")
# psql, for pawl migrate; accounts, for the service's.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "postgresql-client, passwd")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/packaging/debian/postinst" "${PROJECT_SOURCE_DIR}/packaging/debian/prerm"
    "${PROJECT_SOURCE_DIR}/packaging/debian/postrm")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpawl-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "The library: headers, the static and the shared library, CMake and pkg-config for consumers
 whose handlers are C++20.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${PAWL_DEV_PACKAGES}")

include(CPack)
