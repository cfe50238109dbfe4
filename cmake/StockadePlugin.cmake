# stockade_add_plugin(name SOURCES file... [LIBRARIES target...] [TARGET target])
#
# A loadable plugin `name.so`; the target is called `name` unless TARGET says otherwise. Of the
# project itself and, installed, of whoever builds plugins against it.
#
# This is the one place that knows what lets a library be unmapped again: a version script that
# exports the entry point alone and -fno-gnu-unique, without which one inline static pins it in the
# process for good; `-z defs` turns a missing symbol into a link error.
set(STOCKADE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(stockade_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET" "SOURCES;LIBRARIES")
  set(target "${name}")
  if(arg_TARGET)
    set(target "${arg_TARGET}")
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} stockade::framework)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${STOCKADE_PLUGIN_MAP}")
  if(NOT (STOCKADE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))  # whose run-time is in the executable
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    PREFIX "" OUTPUT_NAME "${name}" LINK_DEPENDS "${STOCKADE_PLUGIN_MAP}")
endfunction()
