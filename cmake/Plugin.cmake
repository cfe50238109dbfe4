# add_plugin(name SOURCES file... [LIBRARIES target...] [NO_INSTALL]): a plugin of this project, the
# target `plugin_name`, where the host finds it by name.
include(StockadePlugin)

function(add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "" "SOURCES;LIBRARIES")
  set(target "plugin_${name}")
  stockade_add_plugin("${name}" TARGET ${target}
    SOURCES ${arg_SOURCES} LIBRARIES stockade::options ${arg_LIBRARIES})
  stockade_precompile(${target})
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/stockade/plugins"
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/../..")
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION lib/stockade/plugins)
  endif()
endfunction()
