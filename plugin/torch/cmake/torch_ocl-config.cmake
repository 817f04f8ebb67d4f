# find_package(torch_ocl) gives the target torch_ocl::torch_ocl: the library for the torch that find_package(Torch)
# finds, with torch's own libraries and headers. This file finds its tree from where it lies.
include(CMakeFindDependencyMacro)
find_dependency(Torch)

get_filename_component(_torch_ocl_tree ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _torch_ocl_minor "${Torch_VERSION}")
set(_torch_ocl_library ${_torch_ocl_tree}/lib/libtorch_ocl_torch${CMAKE_MATCH_1}${CMAKE_MATCH_2}.so)
if(NOT EXISTS ${_torch_ocl_library})
  set(torch_ocl_FOUND FALSE)
  set(torch_ocl_NOT_FOUND_MESSAGE
      "this torch_ocl was not built for torch ${Torch_VERSION}: there is no ${_torch_ocl_library}")
elseif(NOT TARGET torch_ocl::torch_ocl)
  add_library(torch_ocl::torch_ocl SHARED IMPORTED)
  set_target_properties(torch_ocl::torch_ocl PROPERTIES
    IMPORTED_LOCATION ${_torch_ocl_library}
    INTERFACE_INCLUDE_DIRECTORIES ${_torch_ocl_tree}/include
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES}")
endif()
unset(_torch_ocl_tree)
unset(_torch_ocl_minor)
unset(_torch_ocl_library)
