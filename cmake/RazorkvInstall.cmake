# cmake --install: shared library, public headers, command, CMake package (find_package(razorkv) gives razorkv::razorkv).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/razorkv)
install(TARGETS razorkv_library EXPORT razorkv LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/razorkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT razorkv NAMESPACE razorkv:: FILE razorkvConfig.cmake DESTINATION ${package_dir})
write_basic_package_version_file(razorkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/razorkvConfigVersion.cmake DESTINATION ${package_dir})
if(TARGET razorkv)
  install(TARGETS razorkv RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE NOTICE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
