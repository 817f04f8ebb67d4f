# What a user's own configuration gets: no warning is an error, whatever the compiler thinks of it.
set(folder ${BUILD}/defaults)
file(REMOVE_RECURSE ${folder})
foreach(bundle OFF ON)
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${folder} -DCMAKE_CXX_COMPILER=${CXX}
                          -DOCLTENSOR_BUILD_TESTS=OFF -DOCLTENSOR_BUILD_BENCH=OFF -DOCLTENSOR_BUNDLE_DEPENDENCIES=${bundle}
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${folder}/compile_commands.json commands)
  if(NOT commands MATCHES "-Wall" OR commands MATCHES "-Werror")
    message(FATAL_ERROR "a plain configuration (bundled: ${bundle}) compiles with -Werror, or without warnings")
  endif()
endforeach()
