# What `find_package(stockade)` finds: stockade::framework and stockade_add_plugin().
include(CMakePackageConfigHelpers)
set(STOCKADE_HOST "bin/stockade")
configure_package_config_file(cmake/stockadeConfig.cmake.in
  "${PROJECT_BINARY_DIR}/package/stockadeConfig.cmake"
  INSTALL_DESTINATION lib/cmake/stockade PATH_VARS STOCKADE_HOST)
# Whether a plugin that was built fits the host that loads it, its fingerprint says.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/stockadeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/package/stockadeConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/stockadeConfigVersion.cmake"
  cmake/StockadePlugin.cmake cmake/plugin.map
  DESTINATION lib/cmake/stockade)
install(EXPORT stockade NAMESPACE stockade:: FILE stockadeTargets.cmake
  DESTINATION lib/cmake/stockade)
# The seam of tools, which has no code of its own.
install(FILES plugins/tool.hpp plugins/session.hpp DESTINATION include/stockade/plugins)
install(FILES sandbox/session.hpp sandbox/policy.hpp DESTINATION include/stockade/sandbox)
