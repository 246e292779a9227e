// Uses the installed library: the version, an error that crosses its boundary, and the public headers as they are
// shipped.
#include <cstdio>
#include <cstring>

#include "razorkv/razorkv.h"
#include "razorkv/version.h"

int main() {
  if (std::strcmp(razorkv::version(), RAZORKV_VERSION_STRING) != 0) {
    std::fprintf(stderr, "headers of %s with a library of %s\n", RAZORKV_VERSION_STRING, razorkv::version());
    return 1;
  }
  try {
    razorkv::Model::load("/no/such/file.gguf");
  } catch (const razorkv::FileError& error) {
    std::printf("razorkv %s: %s\n", razorkv::version(), error.what());
    return 0;
  }
  std::fprintf(stderr, "a missing file was loaded\n");
  return 1;
}
