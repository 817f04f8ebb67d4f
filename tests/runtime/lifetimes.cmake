# No library has a thread_local object with a destructor. The host's has no static one either; the plugin's exit handlers and
# what libraries of others register stay, which one cannot tell apart here.
foreach(library ${LIBRARIES})
  execute_process(COMMAND nm -D --undefined-only ${library} OUTPUT_VARIABLE undefined COMMAND_ERROR_IS_FATAL ANY)
  if(undefined MATCHES "__cxa_thread_atexit")
    message(FATAL_ERROR "${library} has a thread_local object with a destructor: use thread_owned() of src/base")
  endif()
  if(library MATCHES "libocltensor.so" AND undefined MATCHES "__cxa_atexit")
    message(FATAL_ERROR "${library} has a static object with a destructor: leak it, as its neighbours")
  endif()
endforeach()
