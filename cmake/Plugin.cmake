# add_plugin(name SOURCES file... [LIBRARIES target...] [NO_INSTALL]): a loadable plugin `name.so`.
#
# This is the one place that knows what lets a library be unmapped again: a version script that
# exports the entry point alone and -fno-gnu-unique, without which one inline static pins it in the
# process for good; `-z defs` turns a missing symbol into a link error.
set(STOCKADE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "" "SOURCES;LIBRARIES")
  set(target "plugin_${name}")
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE stockade::options stockade::framework ${arg_LIBRARIES})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  stockade_precompile(${target})
  target_link_options(${target} PRIVATE "LINKER:--version-script=${STOCKADE_PLUGIN_MAP}")
  if(NOT (STOCKADE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))  # whose run-time is in the executable
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME "${name}"
    LINK_DEPENDS "${STOCKADE_PLUGIN_MAP}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/stockade/plugins"
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/../..")
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION lib/stockade/plugins)
  endif()
endfunction()
