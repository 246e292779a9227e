# Variables: build (folder that is built), generator, compiler, flags, model (may be empty).
set(work ${build}/install-test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${generator} -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags} -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
# The copy must work wherever it lies.
file(RENAME ${work}/prefix ${work}/moved)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${work}/moved/lib ${work}/build/program)
# The example answers from a compressed document, where the model is at hand.
if(model AND EXISTS ${model})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${work}/moved/lib ${work}/build/ask_document ${model}
      ${CMAKE_CURRENT_LIST_DIR}/program.cpp "What does this program check?")
endif()
if(EXISTS ${work}/moved/bin/razorkv)
  run(${work}/moved/bin/razorkv --version)
endif()
