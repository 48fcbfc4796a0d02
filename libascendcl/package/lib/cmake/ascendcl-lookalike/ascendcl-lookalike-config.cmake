# find_package(ascendcl-lookalike REQUIRED) makes the target ascendcl-lookalike::ascendcl.
get_filename_component(_ascendcl_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ascendcl-lookalike::ascendcl)
  add_library(ascendcl-lookalike::ascendcl SHARED IMPORTED)
  set_target_properties(ascendcl-lookalike::ascendcl PROPERTIES
    IMPORTED_LOCATION "${_ascendcl_prefix}/lib/libascendcl.so"
    IMPORTED_SONAME "libascendcl.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_ascendcl_prefix}/include")
endif()
unset(_ascendcl_prefix)
