# What `find_package(stockade)` finds: stockade::framework and stockade_add_plugin().
include(CMakePackageConfigHelpers)
set(STOCKADE_HOST "bin/stockade")
configure_package_config_file(cmake/stockadeConfig.cmake.in
  "${PROJECT_BINARY_DIR}/package/stockadeConfig.cmake"
  INSTALL_DESTINATION lib/cmake/stockade PATH_VARS STOCKADE_HOST)
# A plugin fits the version that it was built for alone; its fingerprint says so, too.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/stockadeConfigVersion.cmake"
  COMPATIBILITY ExactVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/package/stockadeConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/stockadeConfigVersion.cmake"
  cmake/StockadePlugin.cmake cmake/plugin.map
  DESTINATION lib/cmake/stockade)
install(EXPORT stockade NAMESPACE stockade:: FILE stockadeTargets.cmake
  DESTINATION lib/cmake/stockade)
# The seam of tools, which has no code of its own.
install(FILES plugins/tool.hpp DESTINATION include/stockade/plugins)
