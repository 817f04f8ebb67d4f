/* The template backend with faults that end or stop a process, for the conformance kit's own tests:
 *   device.report crashes, stream.query of a stream that was created hangs, operators.find of
 *   "no_such_operator.out" ends the process, mul.out of float64 crashes, fill.Scalar_out of float32
 *   hangs. All else is right; with FAULTY_AT_EXIT in the environment, the end of the process
 *   crashes, too. */
#define tb_plugin_descriptor right_descriptor
#define tb_plugin_get_api right_get_api
#include "../../src/examples/backend/plugin.c" /* NOLINT(bugprone-suspicious-include) */
#undef tb_plugin_descriptor
#undef tb_plugin_get_api

static tb_operator_api right;

static void crash(void) {
  volatile int* nothing = NULL;
  *nothing = 1;
}
static void hang(void) {
  for (;;) pause();
}

static uint64_t faulty_report(char* text, uint64_t capacity) {
  crash();
  return device_report(text, capacity);
}
static tb_status faulty_query(tb_stream stream, tb_error* error) {
  if (stream != &default_stream) hang();
  return check_stream(stream, error);
}
static tb_status faulty_find(const char* name, tb_op* op, tb_error* error) {
  if (strcmp(name, "no_such_operator.out") == 0) exit(0);
  return right.find(name, op, error);
}
static int is_float_of(const tb_call* call, uint8_t bits) {
  return call->outs[0]->dtype.code == TB_DTYPE_FLOAT && call->outs[0]->dtype.bits == bits;
}
static tb_status faulty_invoke(const tb_call* call, tb_error* error) {
  tb_op mul = NULL, fill_scalar = NULL;
  right.find("mul.out", &mul, NULL);
  right.find("fill.Scalar_out", &fill_scalar, NULL);
  if (call != NULL && call->op == mul && is_float_of(call, 64)) crash();
  if (call != NULL && call->op == fill_scalar && is_float_of(call, 32)) hang();
  return right.invoke(call, error);
}

EXPORT const tb_plugin_descriptor_t tb_plugin_descriptor = {
    .magic = TB_PLUGIN_MAGIC,
    .struct_size = sizeof(tb_plugin_descriptor_t),
    .abi_major = TB_ABI_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .device_type = "faulty",
    .name = "template backend with faults",
    .version = "1.0"};

EXPORT tb_status tb_plugin_get_api(uint32_t abi_major, const tb_host_api* host, tb_error* error,
                                   const tb_api** api) {
  const tb_status status = right_get_api(abi_major, host, error, api);
  if (status != TB_OK || plugin.device.report == faulty_report) return status;
  if (getenv("FAULTY_AT_EXIT") != NULL) atexit(crash);
  right = plugin.operators;
  plugin.device.report = faulty_report;
  plugin.stream.query = faulty_query;
  plugin.operators.find = faulty_find;
  plugin.operators.invoke = faulty_invoke;
  return status;
}
