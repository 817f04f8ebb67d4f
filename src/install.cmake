# Installed tree: headers, libraries, CMake package, pkg-config file, documents.
include(CMakePackageConfigHelpers)

install(TARGETS ocltensor EXPORT ocltensor_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${ops_headers} ${generated_dir}/include/ocltensor/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ocltensor)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ocltensor)
install(EXPORT ocltensor_targets NAMESPACE ocltensor:: DESTINATION ${package_dir})
configure_package_config_file(package/ocltensor-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ocltensor-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ocltensor-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ocltensor-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ocltensor-config-version.cmake DESTINATION ${package_dir})
# The file finds its tree from where it lies, so that the tree may be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(package/ocltensor.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ocltensor.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ocltensor.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What a user reads, in the tree that its links name; the licences.
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/ocltensor)
foreach(file README.md CHANGELOG.md CONTRIBUTING.md LICENSE)
  install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${doc_dir})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/third_party_notes DESTINATION ${doc_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugin/torch/examples/libraries DESTINATION ${doc_dir}/plugin/torch/examples
        FILES_MATCHING PATTERN "*.py")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/results DESTINATION ${doc_dir}/bench FILES_MATCHING PATTERN "*.svg")
foreach(file src/GLOSSARY.md src/base/SETTINGS.md src/docs/captures.md src/docs/compile.md src/docs/limits.md src/docs/quantised.md src/docs/scale_out.md
             src/docs/traces.md src/docs/tutorial.md src/docs/write_a_backend.md src/host/README.md plugin/opencl/README.md
             plugin/opencl/DEVICES.md plugin/torch/README.md plugin/torch/torch_ocl/inductor/README.md plugin/torch/NAMES.md plugin/torch/STATE.md plugin/torch/OPERATORS.md
             plugin/torch/ERRORS.md plugin/torch/csrc/runtime/README.md plugin/torch/csrc/profiler/README.md
             plugin/torch/csrc/operators/README.md plugin/torch/csrc/composites/README.md
             plugin/torch/csrc/api/README.md plugin/torch/include/torch_ocl/torch_ocl.h
             plugin/torch/examples/libtorch/digits.cpp
             plugin/torch/csrc/module/README.md plugin/torch/csrc/distributed/README.md plugin/torch/csrc/plan/README.md plugin/torch/csrc/sparse/README.md plugin/torch/judges/README.md
             plugin/torch/wheels/README.md plugin/torch/torch_ocl/integrations/README.md plugin/torch/upstream/README.md
             plugin/torch/examples/README.md plugin/torch/examples/comfyui/README.md
             plugin/torch/examples/comfyui/page.png
             plugin/torch/JUDGES.md plugin/torch/DISPATCH.md
             plugin/opencl/ops/quantised/README.md plugin/opencl/nvidia_hopper/README.md plugin/opencl/nvidia_mma/README.md
             plugin/opencl/matrix_units/README.md tests/README.md
             bench/README.md bench/RESULTS.md bench/history.md bench/resnet18.svg include/tensor_backend/plugin.h
             include/tensor_backend/stubs.h)
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${doc_dir}/${folder})
endforeach()

# The tutorial's programs, and a backend to start from, with the names that its README and the guide link to.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/examples DESTINATION ${doc_dir}/src)

# The plugin is made in another folder, later: its rule runs at the end of the configuration. Its folder is where the
# loader looks (src/loader), and the program that it starts lies beside it.
function(ocltensor_install_plugin)
  if(TARGET ocltensor_plugin)
    set(folder ${CMAKE_INSTALL_LIBDIR}/${OCLTENSOR_PLUGIN_FOLDER})
    install(TARGETS ocltensor_plugin LIBRARY DESTINATION ${folder})
    install(TARGETS ocltensor-builder RUNTIME DESTINATION ${folder})
  endif()
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL ocltensor_install_plugin)
