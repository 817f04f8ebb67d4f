# Installs the build into a fresh tree, builds the consumer against it, runs it.
set(tree ${BUILD}/consumer)
file(REMOVE_RECURSE ${tree})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
if(SANITIZE)
  set(FLAGS "${FLAGS} -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree}/installed)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${tree}/build -DCMAKE_PREFIX_PATH=${tree}/installed
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${tree}/build)
run(${tree}/build/consumer)
