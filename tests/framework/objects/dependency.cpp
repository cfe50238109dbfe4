// SPDX-License-Identifier: MIT
extern "C" __attribute__((visibility("default"))) int stockade_test_dependency() {
  return 1;
}
